-- title: A regression that moegate ab caught on an H200: span before and now, 64 tokens
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
WITH side AS (
SELECT "Case" AS "case", 'before: chain3' AS series, "Before (us)" AS us FROM page_1
UNION ALL SELECT "Case", 'now: fused_one_block', "Now (us)" FROM page_1
)
SELECT '' AS panel,
       iif("case" LIKE '%experts=256%', '256 experts', '128 experts') || iif("case" LIKE '%launch=graph%', ', graph', ', stream') AS label,
       series,
       us AS value,
       us AS "from",
       us AS "to",
       'us; less is better' AS axis
FROM side
