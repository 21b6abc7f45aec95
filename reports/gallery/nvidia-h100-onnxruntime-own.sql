-- title: Time of the re-creation over that of ONNX Runtime's own kernel
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT product AS panel,
       route AS label,
       cache AS series,
       ratio AS value,
       'time of the re-creation over that of ONNX Runtime''s own kernel, one scale factor per channel' AS axis
FROM page_1
WHERE "scale-block" = 0
