-- title: MXFP4 products of gpt-oss on an H100: time of triton_kernels over ours
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3 UNION ALL SELECT * FROM page_4
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       'triton_kernels over ours' AS series,
       CAST("its best over ours" AS REAL) AS value,
       'time of triton_kernels over ours; over 1, ours is faster' AS axis
FROM t
