-- title: before and after: every variant against the one it replaces, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- What a variant is compared with, its operator states (OpSpec::before) and the run has stored. Of the lines whose pattern
-- fits the variant and whose before was measured in the same case, the one of lowest rank counts. A run that a program of
-- schema 2 or older stored has the lines that this report had then; it has no rows of other operators.
-- Speedup is before / after, more than 1 is better; the interval is from one ratio per process (on a host, of the paired
-- ratios to the yardstick), so it needs two processes. ~ stands where the interval includes 1 or does not exist.
-- other: the remaining parameters that vary within this model and run.
WITH measured AS (
  SELECT case_id, op, variant, round, path, span_ns, judged FROM level WHERE run_id = :run AND (:op IS NULL OR op = :op)
), stated AS (
  SELECT op, rank, variant AS before, after FROM before WHERE run_id = :run
), compared AS (  -- before is that of the lowest rank
  SELECT a.case_id, a.variant, before, min(rank)
  FROM measured a JOIN stated s ON s.op = a.op AND a.variant GLOB after
  JOIN measured b ON b.case_id = a.case_id AND b.variant = before
  WHERE NOT EXISTS (SELECT 1 FROM stated s WHERE s.op = a.op AND s.before = a.variant)
  GROUP BY a.case_id, a.variant
), ratio AS (
  SELECT a.case_id, a.variant, before, b.span_ns AS before_ns, a.span_ns AS after_ns, a.path,
         ln(b.judged / a.judged) AS x
  FROM compared CROSS JOIN measured a USING (case_id, variant)  -- CROSS: in this order, not quadratic in cases
  CROSS JOIN measured b ON b.case_id = a.case_id AND b.round = a.round AND b.variant = before
  WHERE a.judged > 0 AND b.judged > 0
), summary AS (
  SELECT case_id, variant, before, exp(avg(ln(before_ns))) AS before_ns, exp(avg(ln(after_ns))) AS after_ns,
         avg(x) AS x, reach95(x) AS reach, max(path) AS path
  FROM ratio GROUP BY case_id, variant
)
SELECT section AS model,
       CAST(params ->> 'tokens' AS INTEGER) AS tokens,
       params ->> 'routing' AS routing,
       params ->> 'launch' AS launch,
       params ->> 'cache' AS cache,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key NOT IN ('tokens', 'routing', 'launch', 'cache')
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = rc.section AND v.name = j.key)) AS other,
       before,
       variant,
       round(before_ns / 1000, iif(before_ns < 1e5, 2, 1)) AS "Before (us)",
       round(after_ns / 1000, iif(after_ns < 1e5, 2, 1)) AS "After (us)",
       speedup_text(x, reach, 2) AS Speedup,
       interval_text(x, reach, 2) AS "95 % CI",
       path
FROM summary JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run
ORDER BY suite, section, op, launch, cache, routing, tokens, key, variant
