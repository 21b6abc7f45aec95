-- title: FC2 of an MoE layer as one dense GEMM as TensorRT-LLM PR 12686 tabulates it: alpha per K tile and per expert
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; us; speed-up; 95 % CI; % of floor; published speed-up
-- people: speed-up; 95 % CI; published speed-up
-- programs: case; speedup; low; high; published speedup
-- One row per model, tokens and variant: the PR's pairs by tile of the output, beside them single steps of its change, then
-- ours and a library. us is the span, first start to last end. Speed-up against the variant named beside it, with 95 % interval; ~ where that includes 1 or does
-- not exist. The PR's before does not run with the tile of two blocks; what has no before of its own is compared with that of
-- 128x128. cublaslt_plain does not do the alpha work: what alpha costs the others is in its row. other: what varies beside
-- model and tokens.
-- TFLOP/s issued: of all products, as the dense form issues them; k / E of them are useful. sparse_rows issues no others, and
-- has no such figure.
-- dense floor us: what no dense launch can beat, bytes / bandwidth and operations / rate, at the ceilings that `moegate doctor
-- --db` measured on the same device; without them it is empty. Writes that fit in the cache are left out.
-- sparse floor us: the same of the work that alpha makes compulsory, the larger of the two: useful products, the weights of
-- experts that some token needs. % of floor: the sparse one for sparse_rows, for all others the larger dense one.
--
-- The published columns are not measured here: TensorRT-LLM PR 12686, B200, NVFP4 operands, cold L2. They stand by its own
-- shape, K = 65536 and N = 7168, on a GPU alone, in the rows of the same tile. Their TFLOP/s are of the products issued.
-- The pull request was closed for PR 13833, which splits K and swaps the operands; its best tactic stands by stream_k, the
-- variant here that shares K out.
WITH what (place, variant, role, tile, before) AS (
  VALUES (1, 'alpha_per_k_tile', 'before', '128x128', NULL),
         (2, 'alpha_from_global', 'step: alpha from global memory', '128x128', 'alpha_per_k_tile'),
         (3, 'alpha_ring_per_expert', 'step: one sum per expert', '128x128', 'alpha_per_k_tile'),
         (4, 'alpha_per_expert', 'after', '128x128', 'alpha_per_k_tile'),
         (5, 'alpha_per_k_tile_n64', 'before', '128x64', NULL),
         (6, 'alpha_per_expert_n64', 'after', '128x64', 'alpha_per_k_tile_n64'),
         (7, 'alpha_per_expert_n64_acc3', 'step: three accumulators', '128x64', 'alpha_per_expert_n64'),
         (8, 'alpha_per_expert_cluster2', 'after', '256x128 of two blocks', 'alpha_per_k_tile'),
         (9, 'stream_k', 'ours', NULL, 'alpha_per_k_tile'),
         (10, 'sparse_rows', 'ours, useful products only', NULL, 'alpha_per_k_tile'),
         (11, 'cublaslt_plain', 'library, without the alpha work', NULL, 'alpha_per_k_tile')
), published (tokens, tile, before, after) AS (
  VALUES ('128', '128x128', 76.54, 75.94),
         ('256', '128x128', 80.59, 76.48),
         ('288', '128x128', 151.40, 138.26),
         ('384', '128x128', 152.01, 142.82),
         ('128', '128x64', 65.80, 62.63),
         ('192', '128x64', 127.81, 111.89),
         ('288', '128x64', 190.41, 162.79),
         ('384', '128x64', 190.97, 169.95),
         ('128', '256x128 of two blocks', NULL, 70.22),
         ('256', '256x128 of two blocks', NULL, 72.43),
         ('288', '256x128 of two blocks', NULL, 133.01),
         ('384', '256x128 of two blocks', NULL, 135.64)
), successor (tokens, us) AS (
  VALUES ('32', 52.09), ('64', 52.68), ('96', 53.15), ('128', 53.89)
), measured AS (
  SELECT case_id, section AS model, variant, round, span_ns, backend, judged
  FROM level WHERE run_id = :run AND op = 'dense_fc2' AND variant <> 'tuned'
), placed AS (  -- tiles are those of the CUDA variants
  SELECT case_id, model, m.variant, exp(avg(ln(span_ns))) AS ns, coalesce(place, 10) AS place,
         role, iif(backend = 'cuda', tile, NULL) AS tile, iif(place IS NULL, 'alpha_per_k_tile', before) AS before
  FROM measured m LEFT JOIN what USING (variant) GROUP BY case_id, m.variant
), change AS (
  SELECT a.case_id, a.variant, avg(ln(b.judged / a.judged)) AS x,
         reach95(ln(b.judged / a.judged)) AS reach
  FROM measured a JOIN placed l USING (case_id, variant)
  JOIN measured b ON b.case_id = a.case_id AND b.round = a.round AND b.variant = l.before
  WHERE a.judged > 0 AND b.judged > 0
  GROUP BY a.case_id, a.variant
), dense AS (  -- what every dense launch does; a scale factor has 4 bytes
  SELECT case_id, 2.0 * m * h * k AS flops,
         (m + h) * k + 4 * iif(json_extract(params, '$.scales') = 'block', (m + (h + 127) / 128) * k / 128, 2) + 4 * m * e AS read_bytes
  FROM (SELECT case_id, params, CAST(json_extract(params, '$.tokens') AS INTEGER) AS m, CAST(json_extract(params, '$.hidden') AS INTEGER) AS h,
               CAST(json_extract(params, '$.experts') AS INTEGER) AS e, (json_extract(params, '$.experts')) * (json_extract(params, '$.inter')) AS k
        FROM bench_case WHERE op = 'dense_fc2')
), floors AS (
  SELECT case_id, key, params, dense.flops AS issued,
         memory_ns(dense.read_bytes, write_bytes, cache_bytes, bandwidth) AS dense_memory_ns,
         products_ns(dense.flops, fp8) AS dense_products_ns,
         max(memory_ns, coalesce(products_ns(bench_case.flops, fp8), 0)) AS sparse_ns
  FROM roof JOIN ceilings USING (run_id) JOIN dense USING (case_id) JOIN bench_case USING (case_id)
  WHERE run_id = :run
), claimed AS (
  SELECT case_id, variant, CASE role WHEN 'before' THEN p.before WHEN 'after' THEN p.after END AS us,
         CASE role WHEN 'after' THEN p.before / p.after END AS gain
  FROM placed l JOIN bench_case USING (case_id) JOIN published p USING (tile)
  WHERE p.tokens = json_extract(params, '$.tokens') AND json_extract(params, '$.hidden') = '7168' AND (json_extract(params, '$.experts')) * (json_extract(params, '$.inter')) = 65536
)
SELECT model,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key <> 'tokens'
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = placed.model AND v.name = j.key)) AS other,
       key AS "case",
       placed.variant,
       role || coalesce(', ' || tile, '') AS "what it is",
       round(ns / 1000, 2) AS us,
       speedup_text(x, reach, 3) AS "speed-up",
       interval_text(x, reach, 3) AS "95 % CI",
       speedup(x, reach) AS speedup,
       exp(x - reach) AS low,
       exp(x + reach) AS high,
       CASE WHEN x IS NOT NULL THEN before END AS against,
       CASE WHEN placed.variant <> 'sparse_rows' THEN round(issued / ns / 1000, 1) END AS "TFLOP/s issued",
       round(dense_memory_ns / 1000, 2) AS "dense floor us: memory",
       round(dense_products_ns / 1000, 2) AS "dense floor us: products",
       round(sparse_ns / 1000, 2) AS "sparse floor us",
       round(100 * iif(placed.variant = 'sparse_rows', sparse_ns, max(dense_memory_ns, coalesce(dense_products_ns, 0))) / ns, 1)
         AS "% of floor",
       claimed.us AS "published us, B200",
       CASE WHEN gain IS NOT NULL THEN printf('%.2fx', gain) END AS "published speed-up",
       round(gain, 4) AS "published speedup",
       round(issued / 1e6 / claimed.us, 0) AS "published TFLOP/s",
       CASE WHEN placed.variant = 'stream_k' AND json_extract(params, '$.hidden') = '7168' AND
                 (json_extract(params, '$.experts')) * (json_extract(params, '$.inter')) = 65536 THEN
         (SELECT s.us FROM successor s WHERE s.tokens = json_extract(params, '$.tokens')) END AS "published us, PR 13833, B200"
FROM placed JOIN floors USING (case_id) LEFT JOIN change USING (case_id, variant) LEFT JOIN claimed USING (case_id, variant)
ORDER BY model, tokens, params, place, placed.variant
