-- title: An A/B of two variants on an H200: speed-up of fused_cluster over chain3
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
WITH every AS (
SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3 UNION ALL SELECT * FROM page_4
)
SELECT iif(heading LIKE '%deepseek-r1%', 'deepseek-r1', 'gpt-oss-120b') AS panel,
       tokens || iif(tokens = 1, ' token', ' tokens') AS label,
       iif(heading LIKE '%launch=graph%', 'CUDA graph', 'stream') AS series,
       CAST(Speedup AS REAL) AS value,
       low AS "from",
       high AS "to",
       'speed-up; more is better' AS axis
FROM every
WHERE tokens NOT LIKE 'geomean%'
