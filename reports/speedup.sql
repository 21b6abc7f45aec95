-- title: before and after: every variant against the one it replaces, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; Before (us); After (us); Speedup; 95 % CI
-- people: Speedup; 95 % CI
-- programs: case; speedup; low; high
-- What a variant is compared with, its operator states (OpSpec::before) and the run has stored; the view `gain` chooses.
-- Speedup is before / after, more than 1 is better; the interval is from one ratio per process (on a host, of the paired
-- ratios to the yardstick), so it needs two processes. ~ stands where the interval includes 1 or does not exist.
-- other: the remaining parameters that vary within this model and run.
SELECT section AS model,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       json_extract(params, '$.routing') AS routing,
       json_extract(params, '$.launch') AS launch,
       json_extract(params, '$.cache') AS cache,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key NOT IN ('tokens', 'routing', 'launch', 'cache')
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = rc.section AND v.name = j.key)) AS other,
       before,
       key AS "case",
       variant,
       round(before_ns / 1000, iif(before_ns < 1e5, 2, 1)) AS "Before (us)",
       round(after_ns / 1000, iif(after_ns < 1e5, 2, 1)) AS "After (us)",
       speedup_text(x, reach, 2) AS Speedup,
       interval_text(x, reach, 2) AS "95 % CI",
       speedup(x, reach) AS speedup,
       exp(x - reach) AS low,
       exp(x + reach) AS high,
       path
FROM gain JOIN bench_case USING (case_id) JOIN run_case rc USING (run_id, case_id)
WHERE run_id = :run AND (:op IS NULL OR gain.op = :op)
ORDER BY suite, section, gain.op, launch, cache, routing, tokens, key, variant
