-- title: MXFP4 products of gpt-oss on an H200: time of the better peer over ours
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3 UNION ALL SELECT * FROM page_4
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       'peer over ours' AS series,
       CAST("best peer over ours" AS REAL) AS value,
       'time of the better of triton_kernels and Marlin over ours; over 1, ours is faster' AS axis
FROM t
