-- title: The nightly suite on an H200, rows of DeepSeek-R1: speed-up over the before, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- value: the middle of the interval, on a log scale.
-- chart: points.vg.json
SELECT 'over ' || before AS panel,
       variant AS label,
       launch AS series,
       round(sqrt(substr("95 % CI", 1, instr("95 % CI", '–') - 1) * substr("95 % CI", instr("95 % CI", '–') + 1)), 3) AS value,
       CAST(substr("95 % CI", 1, instr("95 % CI", '–') - 1) AS REAL) AS "from",
       CAST(substr("95 % CI", instr("95 % CI", '–') + 1) AS REAL) AS "to",
       'speed-up; more is better' AS axis
FROM page_1
WHERE model LIKE 'deepseek-r1%'
