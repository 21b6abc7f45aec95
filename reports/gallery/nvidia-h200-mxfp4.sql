-- title: MXFP4 products of gpt-oss on an H200: share of the floor
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3 UNION ALL SELECT * FROM page_4
), each AS (
  SELECT heading, tokens, floor, 'stream_mma' AS variant, stream_mma AS us FROM t
  UNION ALL SELECT heading, tokens, floor, 'ring_rs', ring_rs FROM t
  UNION ALL SELECT heading, tokens, floor, 'tile_mma', tile_mma FROM t
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       variant AS series,
       100 * CAST(floor AS REAL) / CAST(us AS REAL) AS value,
       'share of the floor, percent; more is better' AS axis
FROM each
WHERE us <> ''
