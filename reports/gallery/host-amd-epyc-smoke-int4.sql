-- title: The smoke suite on a host: speed-up over the yardstick by model and tokens, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
SELECT 'against ' || before AS panel,
       model || ', ' || tokens || iif(routing LIKE 'zipf%', ', ' || routing, '') AS label,
       variant AS series,
       middle AS value,
       low AS "from",
       high AS "to",
       'speed-up; more is better' AS axis
FROM page_1
