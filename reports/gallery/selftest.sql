-- title: The gate tested by its own means: rows that failed, by the slow-down planted in them
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH every AS (
SELECT * FROM page_1
UNION ALL SELECT * FROM page_3
UNION ALL SELECT * FROM page_5
UNION ALL SELECT * FROM page_7
UNION ALL SELECT * FROM page_9
UNION ALL SELECT * FROM page_11
UNION ALL SELECT * FROM page_13
)
SELECT heading AS panel,
       'planted ' || CAST(Injected AS INTEGER) || ' %' AS label,
       'rows that failed' AS series,
       round(100.0 * Failed / "Rows", 1) AS value,
       '% of the rows' AS axis
FROM every
