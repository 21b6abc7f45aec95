-- title: regret: is the configuration that a variant chooses the best one
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; tokens; Regret
-- people: Regret; 95 % CI; Of the mean
-- programs: case; regret; low; high; p; mean; mean_regret
-- A row per layer, token count and routing of a run of `moegate tune --check`, under its first operator. Regret is
-- shipped / best - 1. No round both names the best and measures it (harness/judge/regret.h), so the columns shipped and
-- best, of all rounds, may differ by a little more or less. Of the mean: what would be the best if all routings had to
-- share one configuration, and what it loses in this one. The last row of a variant, without a case, sums up its rows.
WITH cell AS (
  SELECT v.suite,
         CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
         json_extract(params, '$.routing') AS routing,
         v.key,
         v.variant,
         CASE WHEN v.blind THEN 'blind' WHEN v.outcome = 'regressed' THEN 'regret' WHEN v.outcome = 'missing' THEN 'fails'
           ELSE v.outcome END AS outcome,
         nullif(v.waiver, '') AS waiver,
         (SELECT max(path) FROM result JOIN process USING (process_id)
          WHERE run_id = :run AND result.case_id = c.case_id AND result.variant = v.variant) AS shipped,
         v.cause AS best,
         iif(v.head > 0, v.head, NULL) AS shipped_us,
         iif(v.head > 0, v.base, NULL) AS best_us,
         v.why,
         iif(v.head > 0, v.effect, NULL) AS regret,
         iif(v.head > 0, v.low, NULL) AS low,
         iif(v.head > 0, v.high, NULL) AS high,
         iif(v.head > 0, v.p_adjusted, NULL) AS p,
         m.cause AS mean,
         m.effect AS mean_regret
  FROM verdict v LEFT JOIN bench_case c ON c.key = v.key
  LEFT JOIN verdict m ON m.run_id = v.run_id AND m.against = 'mean' AND m.suite = v.suite AND m.key = v.key
                     AND m.variant = v.variant
  WHERE v.run_id = :run AND v.against = 'regret' AND (:op IS NULL OR c.op = :op)
), shown AS (
  SELECT *, 0 AS last, iif(regret IS NULL, why, printf('%.1f %%', 100 * regret)) AS said FROM cell
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, variant, NULL, NULL, NULL, NULL, NULL, NULL, NULL, avg(regret), NULL, NULL, NULL, NULL, NULL,
         1, printf('mean %.1f %%, worst %.1f %%, over 5 %%: %d of %d', 100 * avg(regret), 100 * max(regret),
                   sum(regret > 0.05), count(regret))
  FROM cell GROUP BY variant HAVING count(regret) > 0
)
SELECT suite,
       tokens,
       routing,
       key AS "case",
       variant,
       outcome,
       waiver,
       shipped,
       best,
       round(shipped_us, 2) AS "Shipped (us)",
       round(best_us, 2) AS "Best (us)",
       said AS Regret,
       iif(low IS NULL, NULL, printf('%.1f–%.1f %%', 100 * low, 100 * high)) AS "95 % CI",
       regret,
       low,
       high,
       p,
       mean || printf(': %.1f %%', 100 * mean_regret) AS "Of the mean",
       mean,
       mean_regret
FROM shown
ORDER BY variant, last, suite, routing, tokens, key
