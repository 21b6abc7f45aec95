-- title: Verdict
-- SPDX-License-Identifier: Apache-2.0
-- Failures first, regressions by their lower bound. change: of the level, positive is slower; from and to are one-sided
-- 95 % bounds; before and now are microseconds, on a host ratios to the yardstick. mde: the smallest slow-down that would
-- have been seen. :open leaves out what passed.
SELECT outcome,
       coalesce(op, substr(key, 1, instr(key, '/') - 1)) AS operator,
       section AS model,
       key AS "case",
       variant,
       round(base, 4) AS before,
       round(head, 4) AS now,
       round(100 * effect, 2) AS "change (%)",
       round(100 * low, 2) AS "from (%)",
       round(100 * high, 2) AS "to (%)",
       p_adjusted AS "adjusted p",
       round(100 * mde, 2) AS "mde (%)",
       iif(blind, 'blind', '') AS blind,
       waiver,
       iif(cause <> '', cause || '; ' || why, why) AS why,
       against
FROM own_verdict v LEFT JOIN bench_case USING (key)
LEFT JOIN run_case rc ON rc.run_id = v.run_id AND rc.case_id = bench_case.case_id
WHERE v.run_id = :run AND (:open IS NULL OR outcome NOT IN ('pass', 'identical', 'improved'))
ORDER BY CASE outcome WHEN 'regressed' THEN 0 WHEN 'wrong' THEN 1 WHEN 'missing' THEN 2 WHEN 'environment' THEN 3
         WHEN 'waived' THEN 4 WHEN 'inconclusive' THEN 5 WHEN 'new' THEN 6 WHEN 'improved' THEN 7 WHEN 'pass' THEN 8 ELSE 9 END,
         low DESC, key, variant
