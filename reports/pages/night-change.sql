-- title: Change of every judged row, sorted, with its bounds; below 0 is faster
-- SPDX-License-Identifier: Apache-2.0
SELECT row_number() OVER (ORDER BY effect, key, variant) AS place,
       key AS "case",
       variant,
       outcome,
       round(100 * effect, 2) AS "change (%)",
       round(100 * low, 2) AS "from (%)",
       round(100 * high, 2) AS "to (%)"
FROM own_verdict
WHERE run_id = :run AND effect IS NOT NULL
ORDER BY place
