-- title: CUDA 12.4 over 13.0, by variant
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT operator AS panel,
       replace(variant, '`', '') AS label,
       'CUDA 12.4' AS series,
       "12.4 / 13.0" AS value,
       'time of the CUDA 12.4 build over that of 13.0' AS axis
FROM page_1
