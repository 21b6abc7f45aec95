-- title: How far the block that a rule chooses is behind the fastest one
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH cell AS (
SELECT model || ', ' || product AS panel, tokens || ' tokens' AS label, "behind the best" AS now, before
FROM page_1
WHERE before <> '' AND "behind the best" <> '' AND GPU = 'A' AND model IN ('R1, whole experts', 'Qwen3-235B TP4')
), side AS (
SELECT panel, label, 'the rule before' AS series, before AS share FROM cell
UNION ALL SELECT panel, label, 'the rule', now FROM cell
)
SELECT panel, label, series, CAST(replace(share, ' %', '') AS REAL) AS value, '% behind; less is better' AS axis
FROM side
