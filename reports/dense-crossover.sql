-- title: FC2 of an MoE layer: one dense GEMM over all experts against a grouped GEMM and the sum of a token's rows
-- SPDX-License-Identifier: Apache-2.0
-- keep: tokens; routing; scales; dense us; sparse us; dense / sparse; 95 % CI; faster
-- people: dense / sparse; 95 % CI
-- programs: case; dense_fc2 case; moe_sum case; ratio; low; high
-- One row per model, tokens and routing, where a run measured dense_fc2, moe_down (fp8) and moe_sum of the same layer. Each
-- is the fastest variant, moe_down also of its blocks and dense_fc2 of its steps of K. Those that are not the dense form do
-- not count: cublaslt_plain does no alpha work, sparse_rows leaves products out, and tuned may launch it. Routing changes
-- nothing of the dense form, so that its figure of any routing stands by all.
-- sparse_rows us: where it ran with the same routing, which decides how much it leaves out.
-- dense / sparse: us of dense_fc2 over those of moe_down and moe_sum together, two launches without the gap between them,
-- which a layer of several launches would have, with 95 % interval over the processes. faster is ~ where that includes 1 or
-- does not exist. active experts: those whose weights moe_down reads; the dense form reads all.
-- scales: of dense_fc2. tensor is one factor for each operand, where moe_down has one per 128.
WITH measured AS (
  SELECT case_id, op, section, facts, params, variant, round, span_ns,
         json_array(json_extract(params, '$.tokens'), json_extract(params, '$.topk'), json_extract(params, '$.hidden'), json_extract(params, '$.launch'), json_extract(params, '$.cache')) AS rows_of,
         json_array(json_extract(params, '$.experts'), json_extract(params, '$.inter')) AS weights_of,
         CASE op WHEN 'moe_down' THEN json_array(section, json_extract(params, '$.routing')) WHEN 'dense_fc2' THEN json_extract(params, '$.scales') END AS kind
  FROM level WHERE run_id = :run AND variant <> 'cublaslt_plain'
    AND (op = 'dense_fc2' AND variant <> 'tuned' OR op = 'moe_sum' OR op = 'moe_down' AND json_extract(params, '$.dtype') = 'fp8')
), spans AS (
  SELECT *, exp(avg(ln(span_ns))) AS ns FROM measured GROUP BY case_id, variant
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY op, rows_of, weights_of, kind ORDER BY ns, variant, case_id) AS place
  FROM spans WHERE variant <> 'sparse_rows'
), sparse_rows AS (
  SELECT rows_of, weights_of, kind AS scales, json_extract(params, '$.routing') AS routing, min(ns) AS ns
  FROM spans WHERE variant = 'sparse_rows' GROUP BY 1, 2, 3, 4
), layer AS (
  SELECT down.case_id, down.section, down.facts, down.params, dense.params AS dense_params,
         rows_of, down.weights_of, dense.case_id AS dense_case, dense.variant AS dense_variant, dense.ns AS dense_ns,
         down.variant AS down_variant, down.ns AS down_ns,
         total.case_id AS sum_case, total.variant AS sum_variant, total.ns AS sum_ns
  FROM ranked down JOIN ranked dense USING (rows_of, weights_of) JOIN ranked total USING (rows_of)
  WHERE down.op = 'moe_down' AND dense.op = 'dense_fc2' AND total.op = 'moe_sum'
    AND down.place = 1 AND dense.place = 1 AND total.place = 1
), ratio AS (
  SELECT l.case_id, dense_case, avg(ln(a.span_ns / (b.span_ns + c.span_ns))) AS x,
         reach95(ln(a.span_ns / (b.span_ns + c.span_ns))) AS reach
  FROM layer l JOIN measured a ON a.case_id = dense_case AND a.variant = dense_variant
  JOIN measured b ON b.case_id = l.case_id AND b.variant = down_variant AND b.round = a.round
  JOIN measured c ON c.case_id = sum_case AND c.variant = sum_variant AND c.round = a.round
  GROUP BY l.case_id, dense_case
)
SELECT replace(section, '-down', '') AS model,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       json_extract(params, '$.routing') AS routing,
       json_extract(facts, '$.active_experts') AS "active experts",
       json_extract(dense_params, '$.scales') AS scales,
       dense_variant || iif(json_extract(dense_params, '$.k_tile') <> '128', ' k_tile=' || (json_extract(dense_params, '$.k_tile')), '') AS dense,
       round(dense_ns / 1000, 2) AS "dense us",
       down_variant AS moe_down,
       round(down_ns / 1000, 2) AS "moe_down us",
       round(sum_ns / 1000, 2) AS "moe_sum us",
       round((down_ns + sum_ns) / 1000, 2) AS "sparse us",
       round(s.ns / 1000, 2) AS "sparse_rows us",
       printf('%.2f', exp(x)) AS "dense / sparse",
       interval_text(x, reach, 2) AS "95 % CI",
       exp(x) AS ratio,
       exp(x - reach) AS low,
       exp(x + reach) AS high,
       CASE WHEN x + reach < 0 THEN 'dense' WHEN x - reach > 0 THEN 'sparse' ELSE '~' END AS faster,
       (SELECT key FROM bench_case c WHERE c.case_id = l.case_id) AS "case",
       (SELECT key FROM bench_case c WHERE c.case_id = dense_case) AS "dense_fc2 case",
       (SELECT key FROM bench_case c WHERE c.case_id = sum_case) AS "moe_sum case"
FROM layer l JOIN ratio USING (case_id, dense_case)
LEFT JOIN sparse_rows s ON s.rows_of = l.rows_of AND s.weights_of = l.weights_of
  AND s.scales = json_extract(dense_params, '$.scales') AND s.routing = json_extract(params, '$.routing')
ORDER BY model, scales, routing, tokens, params
