-- title: Worst ten
-- SPDX-License-Identifier: Apache-2.0
-- change: of the level, positive is slower; from and to are one-sided 95 % bounds.
SELECT outcome,
       key AS "case",
       variant,
       round(100 * effect, 2) AS "change (%)",
       round(100 * low, 2) AS "from (%)",
       round(100 * high, 2) AS "to (%)",
       iif(cause <> '', cause, why) AS why
FROM own_verdict
WHERE run_id = :run AND outcome IN ('regressed', 'wrong', 'missing', 'environment')
ORDER BY CASE outcome WHEN 'regressed' THEN 0 WHEN 'wrong' THEN 1 WHEN 'missing' THEN 2 ELSE 3 END, low DESC, key, variant
LIMIT 10
