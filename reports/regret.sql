-- title: regret: is the configuration that a variant chooses the best one
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; tokens; Regret
-- people: Regret; 95 % CI
-- programs: case; regret; low; high; p
-- A row per layer, token count and routing of a run of `moegate tune --check`, under its first operator. Regret is
-- shipped / best - 1. No round both names the best and measures it (harness/judge/regret.h), so the columns shipped and
-- best, of all rounds, may differ by a little more or less.
SELECT v.suite,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       json_extract(params, '$.routing') AS routing,
       v.key AS "case",
       v.variant,
       CASE WHEN v.blind THEN 'blind' WHEN v.outcome = 'regressed' THEN 'regret' WHEN v.outcome = 'missing' THEN 'fails'
         ELSE v.outcome END AS outcome,
       (SELECT max(path) FROM result JOIN process USING (process_id)
        WHERE run_id = :run AND result.case_id = c.case_id AND result.variant = v.variant) AS shipped,
       v.cause AS best,
       iif(v.head > 0, round(v.head, 2), NULL) AS "Shipped (us)",
       iif(v.base > 0, round(v.base, 2), NULL) AS "Best (us)",
       iif(v.head > 0, printf('%.1f %%', 100 * v.effect), v.why) AS Regret,
       iif(v.head > 0, printf('%.1f–%.1f %%', 100 * v.low, 100 * v.high), NULL) AS "95 % CI",
       iif(v.head > 0, v.effect, NULL) AS regret,
       iif(v.head > 0, v.low, NULL) AS low,
       iif(v.head > 0, v.high, NULL) AS high,
       iif(v.head > 0, v.p_adjusted, NULL) AS p
FROM verdict v LEFT JOIN bench_case c ON c.key = v.key
WHERE v.run_id = :run AND v.against = 'regret' AND (:op IS NULL OR c.op = :op)
ORDER BY v.suite, v.variant, routing, tokens, v.key
