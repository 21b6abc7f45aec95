-- title: Level before and now; below the line is faster
-- SPDX-License-Identifier: Apache-2.0
-- Microseconds, on a host ratios to the yardstick.
SELECT key AS "case",
       variant,
       outcome,
       round(base, 4) AS before,
       round(head, 4) AS now
FROM own_verdict
WHERE run_id = :run AND base > 0 AND head > 0
ORDER BY base, key, variant
