-- title: moe_sum with two columns a thread, an A/B of two commits on an H200: speed-up with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
WITH every AS (
SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3
)
SELECT CASE WHEN heading LIKE '%shared-sum%' THEN 'DeepSeek-R1, top-9' WHEN heading LIKE '%deepseek%' THEN 'DeepSeek-R1, top-8'
            ELSE 'Qwen3-30B, top-8' END AS panel,
       tokens || iif(tokens = 1, ' token', ' tokens') AS label,
       'sum_vectorised' AS series,
       middle AS value,
       low AS "from",
       high AS "to",
       'speed-up; more is better' AS axis
FROM every
WHERE tokens NOT LIKE 'geomean%'
