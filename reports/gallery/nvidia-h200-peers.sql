-- title: fp8 layers and products on H200s: time of the best peer over ours
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT 'whole layers, beside hpc-ops' AS panel,
       model || ', ' || tokens || ' tokens' AS label,
       'peer over ours' AS series,
       CAST("hpc-ops over ours" AS REAL) AS value,
       'time of the peer over ours; over 1, ours is faster' AS axis
FROM page_1
UNION ALL
SELECT 'products, beside DeepGEMM, hpc-ops and Triton',
       product || ', ' || tokens || ' tokens',
       'peer over ours',
       CAST("best peer over ours" AS REAL),
       'time of the peer over ours; over 1, ours is faster'
FROM page_2
UNION ALL
SELECT 'products of shapes that nothing was tuned for',
       product || ', ' || tokens || ' tokens',
       'peer over ours',
       CAST("best peer over ours" AS REAL),
       'time of the peer over ours; over 1, ours is faster'
FROM page_3
