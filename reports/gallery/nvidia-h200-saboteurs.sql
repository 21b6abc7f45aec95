-- title: Variants that cheat or break on an H200, by what they were called
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH every AS (
SELECT *, 'as graphs' AS series FROM page_1 UNION ALL SELECT *, 'as launches of a stream' FROM page_2
)
SELECT '' AS panel,
       Called AS label,
       series,
       count(*) AS value,
       'variants' AS axis
FROM every
GROUP BY Called, series
