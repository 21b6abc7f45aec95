-- title: What batch invariance costs on an H200
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3 UNION ALL SELECT * FROM page_4 UNION ALL SELECT * FROM page_5
)
SELECT heading AS panel,
       tokens || iif(tokens = 1, ' token', ' tokens') AS label,
       'fastest invariant variant' AS series,
       CAST(price AS REAL) AS value,
       'time over that of the fastest variant; 1 is free' AS axis
FROM t
