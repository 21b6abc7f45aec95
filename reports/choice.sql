-- title: choice: the fastest variant of each shape and token count, and what it loses where rows are routed otherwise
-- SPDX-License-Identifier: Apache-2.0
-- keep: tokens; choice; us; Next; Regret
-- people: Next; Regret
-- programs: case; variant; next; margin; low; high; regret
-- One row per model, shape and token count: the variant with the least time, by the geometric mean over the routings of the
-- run, of those that were measured in all of them. Of the grouped GEMMs and whole layers the block of rows is part of the
-- choice. other: the remaining parameters that vary within this model and run.
-- Next: the second best, and its time over that of the choice with 95 % interval over the processes; ~ where the two cannot
-- be told apart. Regret: how much the choice loses against the best variant of one routing, where it loses most, and that
-- routing. The choice is the least of several noisy times: measure it again before you build on a small margin.
-- dense_fc2's cublaslt_plain does not count: it does no alpha work.
WITH level_of_run AS (
  SELECT *, CASE WHEN op IN ('moe_gate_up', 'moe_down', 'fused_moe') THEN '$.block' ELSE '$.routing' END AS free
  FROM level WHERE run_id = :run AND (:op IS NULL OR op = :op) AND variant <> 'cublaslt_plain'
), measured AS (
  SELECT case_id, round, ln(span_ns) AS x, section, op, json_extract(params, '$.routing') AS routing,
         variant || iif(free = '$.block', coalesce(' block=' || json_extract(params, free), ''), '') AS variant,
         json_remove(params, '$.routing', free) AS shape
  FROM level_of_run
), each_case AS (
  SELECT case_id, variant, section, op, shape, routing, avg(x) AS x,
         min(avg(x)) OVER (PARTITION BY section, op, shape, routing) AS least
  FROM measured GROUP BY case_id, variant
), everywhere AS (
  SELECT section, op, shape, variant, avg(x) AS x, max(x - least) AS lost, count(*) AS cases,
         max(count(*)) OVER (PARTITION BY section, op, shape) AS most
  FROM each_case GROUP BY section, op, shape, variant
), ranked AS (
  SELECT *, row_number() OVER best AS place, lead(variant) OVER best AS next
  FROM everywhere WHERE cases = most WINDOW best AS (PARTITION BY section, op, shape ORDER BY x, variant)
), chosen AS (
  SELECT section, op, shape, variant, x AS ln_ns, lost, next FROM ranked WHERE place = 1
), by_round AS (
  SELECT section, op, shape, m.round, avg(n.x - m.x) AS x
  FROM chosen JOIN measured m USING (section, op, shape, variant)
  JOIN measured n USING (section, op, shape)
  WHERE n.variant = next AND n.routing IS m.routing AND n.round = m.round
  GROUP BY section, op, shape, m.round
), margin AS (
  SELECT section, op, shape, avg(x) AS x, reach95(x) AS reach FROM by_round GROUP BY section, op, shape
)
SELECT section AS model,
       CAST(json_extract(shape, '$.tokens') AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(shape) j
        WHERE j.key <> 'tokens'
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = r.section AND v.name = j.key)) AS other,
       variant AS choice,
       round(exp(ln_ns) / 1000, 2) AS us,
       next || coalesce(' ' || speedup_with_interval(m.x, reach, 2), ' ~') AS Next,
       iif(lost > 0, printf('%.1f %%', 100 * (exp(lost) - 1)) ||
           coalesce(': ' || (SELECT e.routing FROM each_case e
                             WHERE e.section = r.section AND e.op = r.op AND e.shape = r.shape AND e.variant = r.variant
                             ORDER BY e.x - e.least DESC LIMIT 1), ''), NULL) AS Regret,
       (SELECT min(key) FROM each_case e JOIN bench_case USING (case_id)
        WHERE e.section = r.section AND e.op = r.op AND e.shape = r.shape AND e.variant = r.variant) AS "case",
       substr(variant, 1, instr(variant || ' ', ' ') - 1) AS variant,
       next,
       exp(m.x) AS margin,
       exp(m.x - reach) AS low,
       exp(m.x + reach) AS high,
       exp(lost) - 1 AS regret
FROM chosen r LEFT JOIN margin m USING (section, op, shape)
ORDER BY model, op, json_remove(shape, '$.tokens'), tokens
