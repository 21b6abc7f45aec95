-- title: FC2 as one dense GEMM on an H200: speed-up over its before with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: ../pr-tensorrt-llm-12686.vg.json
SELECT *
FROM page_2
WHERE model = 'deepseek-r1-tp8'
