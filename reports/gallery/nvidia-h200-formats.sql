-- title: Time of bf16 over that of each format of Qwen3-30B's weights, on an H200
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH every AS (
SELECT product, tokens, 'fp8, blocks' AS format, CAST(bf16 AS REAL) / CAST("fp8, blocks" AS REAL) AS value FROM page_1
UNION ALL SELECT product, tokens, 'int8, channels' AS format, CAST(bf16 AS REAL) / CAST("int8, channels" AS REAL) AS value FROM page_1
UNION ALL SELECT product, tokens, 'MXFP4' AS format, CAST(bf16 AS REAL) / CAST("MXFP4" AS REAL) AS value FROM page_1
UNION ALL SELECT product, tokens, 'int4' AS format, CAST(bf16 AS REAL) / CAST("int4 by 128" AS REAL) AS value FROM page_1
)
SELECT product AS panel,
       tokens || ' tokens' AS label,
       format AS series,
       round(value, 2) AS value,
       'time of bf16 over that of the format; over 1 is faster' AS axis
FROM every
