-- title: topk_sort on two threads of an AMD EPYC: speed-up over chain by model and tokens, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
SELECT routing AS panel,
       model || ', ' || tokens AS label,
       variant AS series,
       middle AS value,
       low AS "from",
       high AS "to",
       'speed-up; more is better' AS axis
FROM page_1
