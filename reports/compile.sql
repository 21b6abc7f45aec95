-- title: compile: what kernels that are compiled at their launch cost before the first result
-- SPDX-License-Identifier: Apache-2.0
-- task: measure compile
-- keep: variant; cases; Caches; Modules; Was; Kernels; First calls
-- people: First calls; Slowest
-- programs: first_calls_s; slowest_s
-- Of variants in Python files, of a suite together: one compiled module may serve several sections and operators.
-- Modules: what a process loaded on the GPU by the first launches of these cases, each one once; NULL: nobody counted
-- (a host, the event timer). Kernels: distinct machine codes of these modules that none had before; fewer than Modules:
-- the compiler made the same code again. First calls: seconds of these launches together, compilation included where the
-- compiler's caches did not have them. Caches: empty where a process began without any, as `moegate profile compile` has
-- them; else they were as found. Slowest: the slowest of them, and its case. Of several processes the most. Was: Modules
-- of the run --against; more than that, of as many cases, is a choice that became finer than it was.
WITH said AS (
  SELECT run_id, case_id, variant, process_id,
         max(CASE WHEN name = 'first_call' THEN value END) AS seconds,
         max(CASE WHEN name = 'modules' THEN value END) AS modules,
         max(CASE WHEN name = 'module_bytes' THEN value END) AS bytes,
         max(CASE WHEN name = 'module_codes' THEN value END) AS kernels,
         max(CASE WHEN name = 'jit_cache' THEN value END) AS cached
  FROM metric JOIN result USING (result_id) JOIN process USING (process_id)
  WHERE run_id IN (:run, :against) AND ordinal = -1
    AND name IN ('first_call', 'modules', 'module_bytes', 'module_codes', 'jit_cache')
  GROUP BY case_id, variant, process_id
), swept AS (
  SELECT run_id, suite, variant, process_id, count(*) AS cases, sum(modules) AS modules, sum(bytes) AS bytes,
         sum(kernels) AS kernels, sum(seconds) AS seconds, max(seconds) AS slowest, max(cached) AS cached, key
  FROM said JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id)
  WHERE :op IS NULL OR op = :op
  GROUP BY run_id, suite, variant, process_id
)
SELECT suite,
       variant,
       max(cases) AS cases,
       CASE min(cached) WHEN 0 THEN 'empty' WHEN 1 THEN 'as found' END AS Caches,
       CAST(max(modules) AS INTEGER) AS Modules,
       (SELECT CAST(max(modules) AS INTEGER) FROM swept b
        WHERE b.run_id = :against AND b.suite = s.suite AND b.variant = s.variant) AS Was,
       CAST(max(kernels) AS INTEGER) AS Kernels,
       round(max(bytes) / 1024, 1) AS kB,
       round(max(seconds), 3) AS "First calls",
       max(seconds) AS first_calls_s,
       round(max(slowest), 3) AS Slowest,
       max(slowest) AS slowest_s,
       (SELECT key FROM swept c WHERE c.run_id = :run AND c.suite = s.suite AND c.variant = s.variant
        ORDER BY slowest DESC LIMIT 1) AS "slowest case"
FROM swept s
WHERE run_id = :run
GROUP BY suite, variant
ORDER BY suite, variant
