-- title: A night on one H200 and on two of the same host
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH night AS (
SELECT replace(replace("column 1", ', s', ''), ' (to a second)', '') AS label, "cuda:0" AS one, "cuda:0,1" AS two
FROM page_1 WHERE "column 1" LIKE '%, s%'
), side AS (
SELECT label, 'cuda:0' AS series, one AS seconds FROM night
UNION ALL SELECT label, 'cuda:0,1', two FROM night
)
SELECT 'nightly --rounds 1' AS panel, label, series, seconds AS value, 's; less is better' AS axis
FROM side
