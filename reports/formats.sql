-- title: one layer in every format of its weights: time, bytes, and what each format gains over bf16
-- SPDX-License-Identifier: Apache-2.0
-- keep: format; us; over bf16; 95 % CI; place
-- people: over bf16; 95 % CI
-- programs: case; variant; ratio; low; high
-- One row per layer, product, tokens and format that a run measured of the grouped GEMMs: bf16, fp8 and int8 (moe_gate_up,
-- moe_down), mxfp4 and int4 (w4_gate_up, w4_down, which multiply by activations in bf16, and whose gate-up ends behind
-- SwiGLU). A format's time is that of its quickest variant and block. fp8 by block has a scale factor per 128 x 128.
-- over bf16: time of bf16 over that of the format, with 95 % interval over the processes; ~ where that includes 1 or does not
-- exist, empty where the run has no bf16. place: 1 is the quickest format of the row's layer and tokens, so that reading down
-- a column of tokens shows from where on a format loses.
-- MB, floor us, % of floor: as in the report roofline, each format by its own bytes and rate.
-- output error: rel_l2 against the truth of the format's own weights. What rounding weights costs a model is not in it.
WITH measured AS (
  SELECT case_id, variant, round, span_ns,
         iif(op GLOB '*gate_up', 'gate-up', 'down') AS product,
         CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
         json_array(json_extract(params, '$.experts'), json_extract(params, '$.topk'), json_extract(params, '$.hidden'),
                    json_extract(params, '$.inter'), json_extract(params, '$.routing'), json_extract(params, '$.launch'),
                    json_extract(params, '$.cache')) AS layer,
         CASE coalesce(json_extract(params, '$.weights'), json_extract(params, '$.dtype'))
           WHEN 'bf16' THEN 'bf16'
           WHEN 'mxfp4' THEN 'mxfp4'
           WHEN 'int4' THEN 'int4 by ' || json_extract(params, '$.group')
           ELSE json_extract(params, '$.dtype') || ' by ' || json_extract(params, '$.scaling')
         END AS format
  FROM level
  WHERE run_id = :run AND op IN ('moe_gate_up', 'moe_down', 'w4_gate_up', 'w4_down') AND (:op IS NULL OR op = :op)
), spans AS (
  SELECT *, exp(avg(ln(span_ns))) AS ns FROM measured GROUP BY case_id, variant
), quickest AS (
  SELECT *, rank() OVER (PARTITION BY product, layer, tokens ORDER BY ns) AS place
  FROM (SELECT *, row_number() OVER (PARTITION BY product, layer, tokens, format ORDER BY ns, variant, case_id) AS of_format
        FROM spans)
  WHERE of_format = 1
), ratio AS (
  SELECT q.case_id, q.variant, avg(ln(b.span_ns / a.span_ns)) AS x, reach95(ln(b.span_ns / a.span_ns)) AS reach
  FROM quickest q JOIN quickest base USING (product, layer, tokens)
  JOIN measured a ON a.case_id = q.case_id AND a.variant = q.variant
  JOIN measured b ON b.case_id = base.case_id AND b.variant = base.variant AND b.round = a.round
  WHERE base.format = 'bf16' AND q.format <> 'bf16'
  GROUP BY q.case_id, q.variant
), off AS (
  SELECT case_id, variant, max(rel_l2) AS rel_l2
  FROM process JOIN result USING (process_id) JOIN verified_output USING (verification_id)
  WHERE run_id = :run GROUP BY case_id, variant
)
SELECT printf('%s of %s experts, %s x %s', json_extract(layer, '$[1]'), json_extract(layer, '$[0]'),
              json_extract(layer, '$[2]'), json_extract(layer, '$[3]')) AS layer,
       product,
       json_extract(layer, '$[4]') AS routing,
       tokens,
       format,
       variant,
       round(ns / 1000, 2) AS us,
       round((read_bytes + write_bytes) / 1e6, 2) AS MB,
       round(max(memory_ns, coalesce(products_ns, 0)) / 1000, 2) AS "floor us",
       round(100 * max(memory_ns, coalesce(products_ns, 0)) / ns, 1) AS "% of floor",
       speedup_text(x, reach, 2) AS "over bf16",
       interval_text(x, reach, 2) AS "95 % CI",
       place,
       printf('%.1e', rel_l2) AS "output error",
       key AS "case",
       exp(x) AS ratio,
       exp(x - reach) AS low,
       exp(x + reach) AS high
FROM quickest JOIN bench_case USING (case_id) JOIN run_case USING (case_id) JOIN roof USING (run_id, case_id)
LEFT JOIN ratio USING (case_id, variant) LEFT JOIN off USING (case_id, variant)
WHERE run_id = :run
ORDER BY layer, product DESC, routing, tokens, read_bytes DESC, format
