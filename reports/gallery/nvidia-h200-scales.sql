-- title: Time at 8192 tokens over that of fp8 with factors of blocks, on an H200
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT 'fp8 per channel' AS panel,
       product AS label,
       'time' AS series,
       ROUND(CAST("fp8, channels" AS REAL) / CAST("fp8, blocks" AS REAL), 2) AS value,
       'time over that of fp8 with factors of blocks; below 1 is faster' AS axis
FROM page_1
UNION ALL
SELECT 'int8 per channel',
       product,
       'time',
       ROUND(CAST("int8, channels" AS REAL) / CAST("fp8, blocks" AS REAL), 2),
       'time over that of fp8 with factors of blocks; below 1 is faster'
FROM page_1
