-- title: Tile configurations that vLLM ships, on an H200 at 80 tokens
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT 'gate-up and down together' AS panel,
       layer || ', ' || routing AS label,
       'shipped over best' AS series,
       CAST("shipped, us" AS REAL) / CAST("best, us" AS REAL) AS value,
       'time of the shipped configuration over that of the best one; 1 is the best' AS axis
FROM page_1
