-- title: topk_sort on an H200: speed-up over chain3 with 95 % interval, launches as a CUDA graph
-- SPDX-License-Identifier: Apache-2.0
-- chart: ../speedup.vg.json
SELECT *, 'chain3' AS before
FROM page_1
WHERE launch = 'graph'
