-- title: Triton beside CUDA on an H200: span of the fp8 layer of DeepSeek-R1, cold L2
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
WITH side AS (
SELECT heading, layer, tokens, 'CUDA, before' AS series, gather AS us FROM page_1
UNION ALL SELECT heading, layer, tokens, 'CUDA, best here' AS series, tuned AS us FROM page_1
UNION ALL SELECT heading, layer, tokens, 'Triton' AS series, triton_grouped AS us FROM page_1
UNION ALL SELECT heading, layer, tokens, 'CUDA, before' AS series, gather AS us FROM page_2
UNION ALL SELECT heading, layer, tokens, 'CUDA, best here' AS series, tuned AS us FROM page_2
UNION ALL SELECT heading, layer, tokens, 'Triton' AS series, triton_grouped AS us FROM page_2
UNION ALL SELECT heading, layer, tokens, 'CUDA, before' AS series, sum_per_token AS us FROM page_3
UNION ALL SELECT heading, layer, tokens, 'CUDA, best here' AS series, sum_vectorised AS us FROM page_3
UNION ALL SELECT heading, layer, tokens, 'Triton' AS series, triton_rows AS us FROM page_3
UNION ALL SELECT heading, layer, tokens, 'CUDA, before' AS series, two_kernels AS us FROM page_4
UNION ALL SELECT heading, layer, tokens, 'CUDA, best here' AS series, fused AS us FROM page_4
UNION ALL SELECT heading, layer, tokens, 'Triton' AS series, triton_fused AS us FROM page_4
)
SELECT heading AS panel,
       layer || ', ' || tokens || iif(tokens = 1, ' token', ' tokens') AS label,
       series,
       us AS value,
       us AS "from",
       us AS "to",
       'us; less is better' AS axis
FROM side
WHERE us <> ''
