-- title: before and after: every variant against the one it replaces, with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- What an after is compared with is in the table `pair`: of the lines that fit (operator and variant are patterns)
-- and whose before was measured in the same case, the one of lowest rank. Add lines for a new operator. Speedup is
-- before / after, more than 1 is better; the interval is from one ratio per process (on a host, of the paired
-- ratios to the yardstick), so it needs two processes. ~ stands where the interval includes 1 or does not exist.
-- other: the remaining parameters that vary within this model and run.
WITH pair (rank, op, backend, before, after) AS (
  VALUES (1, 'topk_sort', 'cuda', 'chain3', '*'),
         (1, 'topk_sort', 'host', 'chain', '*'),
         (1, 'qmoe_*', 'cuda', 'single_fp32_acc', 'split_k?_fp32_acc'),
         (2, 'qmoe_*', 'cuda', 'single_fp16_acc', '*'),
         (3, 'qmoe_*', 'cuda', 'single_fp32_acc', '*'),  -- bf16, which is never accumulated in fp16
         (1, 'qmoe_*', 'host', 'single', '*'),
         (1, 'moe_align', 'cuda', 'count_scan_scatter', '*'),
         (1, 'moe_align', 'host', 'counting_sort', '*'),
         (1, 'moe_gate_up', 'cuda', 'gather', '*'),
         (1, 'moe_down', 'cuda', 'gather', '*'),
         (1, 'moe_gate_up', 'host', 'gather', '*'),
         (1, 'moe_down', 'host', 'gather', '*'),
         (1, 'silu_mul_quant', 'cuda', 'two_kernels', '*'),
         (1, 'silu_mul_quant', 'host', 'two_passes', '*'),
         (1, 'moe_sum', 'cuda', 'sum_per_token', '*'),
         (1, 'moe_sum', 'host', 'per_token', '*'),
         (1, 'fused_moe', 'cuda', 'chain_gather', '*'),
         (1, 'fused_moe', 'host', 'chain', '*'),
         (1, 'dense_fc2', 'cuda', 'alpha_per_k_tile_n64', 'alpha_per_expert_n64'),
         (2, 'dense_fc2', 'cuda', 'alpha_per_k_tile', '*'),
         (1, 'dense_fc2', 'host', 'alpha_per_k_tile', '*')
), level AS (
  SELECT case_id, op, variant, round, path, span_ns,
         CASE backend WHEN 'host' THEN ratio ELSE span_ns END AS judged, backend
  FROM result r JOIN process USING (process_id) JOIN run USING (run_id) JOIN device USING (device_id)
  JOIN bench_case USING (case_id)
  WHERE run_id = :run AND r.status IN ('ok', 'noisy') AND samples > 0
), compared AS (  -- before is that of the lowest rank
  SELECT a.case_id, a.variant, before, min(rank)
  FROM level a JOIN pair ON a.op GLOB pair.op AND pair.backend = a.backend AND a.variant GLOB after
  JOIN level b ON b.case_id = a.case_id AND b.variant = before
  WHERE NOT EXISTS (SELECT 1 FROM pair p WHERE a.op GLOB p.op AND p.backend = a.backend AND p.before = a.variant)
  GROUP BY a.case_id, a.variant
), ratio AS (
  SELECT a.case_id, a.variant, before, b.span_ns AS before_ns, a.span_ns AS after_ns, a.path,
         ln(b.judged / a.judged) AS x
  FROM compared CROSS JOIN level a USING (case_id, variant)  -- CROSS: in this order, not quadratic in cases
  CROSS JOIN level b ON b.case_id = a.case_id AND b.round = a.round AND b.variant = before
  WHERE a.judged > 0 AND b.judged > 0
), summary AS (
  SELECT case_id, variant, before, exp(avg(ln(before_ns))) AS before_ns, exp(avg(ln(after_ns))) AS after_ns,
         avg(x) AS x, t975(count(*) - 1) * sd(x) / sqrt(count(*)) AS reach, max(path) AS path
  FROM ratio GROUP BY case_id, variant
), varying AS (
  SELECT section, j.key AS name
  FROM run_case JOIN bench_case USING (case_id), json_each(params) j
  WHERE run_id = :run
  GROUP BY section, j.key HAVING count(DISTINCT j.value) > 1
)
SELECT section AS model,
       CAST(params ->> 'tokens' AS INTEGER) AS tokens,
       params ->> 'routing' AS routing,
       params ->> 'launch' AS launch,
       params ->> 'cache' AS cache,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key NOT IN ('tokens', 'routing', 'launch', 'cache')
          AND EXISTS (SELECT 1 FROM varying v WHERE v.section = rc.section AND v.name = j.key)) AS other,
       before,
       variant,
       round(before_ns / 1000, iif(before_ns < 1e5, 2, 1)) AS "Before (us)",
       round(after_ns / 1000, iif(after_ns < 1e5, 2, 1)) AS "After (us)",
       CASE WHEN x - reach > 0 OR x + reach < 0 THEN printf('%.2fx', exp(x)) ELSE '~' END AS Speedup,
       CASE WHEN reach IS NOT NULL THEN printf('%.2f–%.2f', exp(x - reach), exp(x + reach)) END AS "95 % CI",
       path
FROM summary JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run
ORDER BY suite, section, op, launch, cache, routing, tokens, key, variant
