-- title: The fp8 MoE layer on an H200: time of others over that of tuned; more is better
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
WITH side AS (
SELECT model, tokens, 'gather (ours, re-created)' AS series, CAST("gather / tuned" AS REAL) AS value FROM page_1
UNION ALL SELECT model, tokens, 'Triton (not measured here)', CAST("Triton / tuned" AS REAL) FROM page_1
)
SELECT model AS panel,
       tokens || iif(tokens = 1, ' token', ' tokens') AS label,
       series,
       value,
       value AS "from",
       value AS "to",
       'time over that of tuned' AS axis
FROM side
