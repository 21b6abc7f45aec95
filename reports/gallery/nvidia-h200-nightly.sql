-- title: The nightly suite on an H200, rows of DeepSeek-R1: speed-up over the before, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
SELECT 'over ' || before AS panel,
       variant AS label,
       launch AS series,
       middle AS value,
       low AS "from",
       high AS "to",
       'speed-up; more is better' AS axis
FROM page_1
WHERE model LIKE 'deepseek-r1%'
