-- title: FC2 of an MoE layer as one dense GEMM as TensorRT-LLM PR 12686 tabulates it: alpha per K tile and per expert
-- SPDX-License-Identifier: Apache-2.0
-- One row per model, tokens and variant. us is the span, first start to last end. Speed-up against alpha_per_k_tile, the
-- PR's before, with 95 % interval; ~ where that includes 1 or does not exist. alpha_per_expert is its after, and
-- alpha_per_expert_cluster2 the two-CTA tile that the after made possible. other: what varies beside model and tokens.
-- TFLOP/s: of the products that the dense form issues, k / E of which are useful; a variant that leaves some out may exceed
-- what the device can do, and the floors.
-- floor us: bytes / bandwidth and operations / rate, the larger of which no dense launch can beat, at the ceilings that
-- `moegate doctor --db` measured on the same device; without them it is empty. Writes that fit in the cache are left out of
-- it.
--
-- The published columns are not measured here: TensorRT-LLM PR 12686, B200, NVFP4 operands, cold L2, by tile of the output.
-- They stand by its own shape, K = 65536 and N = 7168, alone. An alpha per K tile did not run with tiles of 256x128. Their
-- speed-up is the before of a tile over the after of the same tile, their TFLOP/s those of the products issued.
WITH published (tokens, variant, tile_128, tile_64, tile_256) AS (
  VALUES ('128', 'alpha_per_k_tile', 76.54, 65.80, NULL),
         ('192', 'alpha_per_k_tile', NULL, 127.81, NULL),
         ('256', 'alpha_per_k_tile', 80.59, NULL, NULL),
         ('288', 'alpha_per_k_tile', 151.40, 190.41, NULL),
         ('384', 'alpha_per_k_tile', 152.01, 190.97, NULL),
         ('128', 'alpha_per_expert', 75.94, 62.63, NULL),
         ('192', 'alpha_per_expert', NULL, 111.89, NULL),
         ('256', 'alpha_per_expert', 76.48, NULL, NULL),
         ('288', 'alpha_per_expert', 138.26, 162.79, NULL),
         ('384', 'alpha_per_expert', 142.82, 169.95, NULL),
         ('128', 'alpha_per_expert_cluster2', NULL, NULL, 70.22),
         ('256', 'alpha_per_expert_cluster2', NULL, NULL, 72.43),
         ('288', 'alpha_per_expert_cluster2', NULL, NULL, 133.01),
         ('384', 'alpha_per_expert_cluster2', NULL, NULL, 135.64)
), claimed AS (
  SELECT a.*, b.tile_128 / a.tile_128 AS x_128, b.tile_64 / a.tile_64 AS x_64,
         min(coalesce(a.tile_128, 1e9), coalesce(a.tile_64, 1e9), coalesce(a.tile_256, 1e9)) AS best
  FROM published a LEFT JOIN published b
    ON b.tokens = a.tokens AND b.variant = 'alpha_per_k_tile' AND a.variant = 'alpha_per_expert'
), measured AS (
  SELECT case_id, section AS model, variant, round, span_ns,
         CASE backend WHEN 'host' THEN ratio ELSE span_ns END AS judged
  FROM result r JOIN process USING (process_id) JOIN run USING (run_id) JOIN device USING (device_id)
  JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id)
  WHERE run_id = :run AND op = 'dense_fc2' AND r.status IN ('ok', 'noisy') AND samples > 0
), level AS (
  SELECT case_id, model, variant, exp(avg(ln(span_ns))) AS ns FROM measured GROUP BY case_id, variant
), change AS (
  SELECT a.case_id, a.variant, avg(ln(b.judged / a.judged)) AS x,
         t975(count(*) - 1) * sd(ln(b.judged / a.judged)) / sqrt(count(*)) AS reach
  FROM measured a JOIN measured b USING (case_id, round)
  WHERE b.variant = 'alpha_per_k_tile' AND a.variant <> 'alpha_per_k_tile' AND a.judged > 0 AND b.judged > 0
  GROUP BY a.case_id, a.variant
), ceilings AS (
  SELECT max(value) FILTER (WHERE name = 'read_bytes_per_s') AS bandwidth, max(value) FILTER (WHERE name = 'fp8_flops') AS fp8
  FROM ceiling WHERE device_id = (SELECT device_id FROM run WHERE run_id = :run)
), roof AS (
  SELECT case_id, params, flops, 1e9 * (read_bytes + max(0, write_bytes - cache_bytes)) / bandwidth AS memory_ns,
         1e9 * flops / fp8 AS products_ns
  FROM bench_case, ceilings, (SELECT cache_bytes FROM device JOIN run USING (device_id) WHERE run_id = :run)
), varying AS (
  SELECT model, j.key AS name FROM level JOIN bench_case USING (case_id), json_each(params) j
  GROUP BY model, j.key HAVING count(DISTINCT j.value) > 1
)
SELECT model,
       CAST(params ->> 'tokens' AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key <> 'tokens' AND EXISTS (SELECT 1 FROM varying v WHERE v.model = level.model AND v.name = j.key)) AS other,
       level.variant,
       round(ns / 1000, 2) AS us,
       CASE WHEN x - reach > 0 OR x + reach < 0 THEN printf('%.3fx', exp(x)) WHEN x IS NOT NULL THEN '~' END AS "speed-up",
       CASE WHEN reach IS NOT NULL THEN printf('%.3f–%.3f', exp(x - reach), exp(x + reach)) END AS "95 % CI",
       round(flops / ns / 1000, 1) AS "TFLOP/s",
       round(memory_ns / 1000, 2) AS "floor us: memory",
       round(products_ns / 1000, 2) AS "floor us: products",
       round(100 * max(memory_ns, coalesce(products_ns, 0)) / ns, 1) AS "% of floor",
       tile_128 AS "published us, B200: 128x128",
       CASE WHEN x_128 IS NOT NULL THEN printf('%.2fx', x_128) END AS "speed-up, 128x128",
       tile_64 AS "published us, B200: 128x64",
       CASE WHEN x_64 IS NOT NULL THEN printf('%.2fx', x_64) END AS "speed-up, 128x64",
       tile_256 AS "published us, B200: 256x128 of two CTAs",
       round(flops / 1e6 / best, 0) AS "published TFLOP/s, best tile"
FROM level JOIN roof USING (case_id) LEFT JOIN change USING (case_id, variant)
LEFT JOIN claimed c ON c.variant = level.variant AND c.tokens = params ->> 'tokens' AND params ->> 'hidden' = '7168'
     AND (params ->> 'experts') * (params ->> 'inter') = 65536
ORDER BY model, tokens, params, level.variant <> 'alpha_per_k_tile', level.variant <> 'alpha_per_expert',
         level.variant <> 'alpha_per_expert_cluster2', level.variant
