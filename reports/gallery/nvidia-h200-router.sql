-- title: The router's logits on H200s: speed-up over cuBLASLt
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2 UNION ALL SELECT * FROM page_3
  UNION ALL SELECT * FROM page_4
), each AS (
  SELECT heading, tokens, cublaslt, 'expert_per_block' AS variant, expert_per_block AS us FROM t
  UNION ALL SELECT heading, tokens, cublaslt, 'mma_cluster', mma_cluster FROM t
  UNION ALL SELECT heading, tokens, cublaslt, 'split_k4', split_k4 FROM t
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       variant AS series,
       round(CAST(cublaslt AS REAL) / CAST(us AS REAL), 2) AS value,
       'time of cublaslt over that of the variant; more is better' AS axis
FROM each
