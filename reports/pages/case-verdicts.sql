-- title: Verdicts, the newest ten
-- SPDX-License-Identifier: Apache-2.0
SELECT run_id AS run,
       outcome,
       round(base, 4) AS before,
       round(head, 4) AS now,
       round(100 * effect, 2) AS "change (%)",
       round(100 * low, 2) AS "from (%)",
       round(100 * high, 2) AS "to (%)",
       p_adjusted AS "adjusted p",
       stage,
       iif(cause <> '', cause || '; ' || why, why) AS why,
       against
FROM verdict
WHERE run_id <= :run AND key = :case AND variant = :variant
ORDER BY run_id DESC
LIMIT 10
