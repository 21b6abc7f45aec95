-- title: int4 products of gpt-oss-20b on an H100: speed-up over a GEMV
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2
), each AS (
  SELECT heading, tokens, single_fp32_acc AS gemv, 'stream_imma' AS variant, stream_imma AS us FROM t
  UNION ALL SELECT heading, tokens, single_fp32_acc, 'stream_rows', stream_rows FROM t
  UNION ALL SELECT heading, tokens, single_fp32_acc, 'stream_mma', stream_mma FROM t
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       variant AS series,
       round(CAST(gemv AS REAL) / CAST(us AS REAL), 2) AS value,
       'time of single_fp32_acc over that of the variant; more is better' AS axis
FROM each
WHERE gemv <> '' AND us <> ''
