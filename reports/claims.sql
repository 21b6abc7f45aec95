-- title: what the pull request claims, beside what this GPU says
-- SPDX-License-Identifier: Apache-2.0
-- keep: tokens; variant; published; here; says
-- people: published; here; 95 % CI; best speed-up
-- programs: case; variant; published low; published high; speedup; low; high; best speedup; best low; best high
-- One row per figure that a pull request publishes, where the run has its case. published: time before over time after, a
-- range where it gives several. here: the same ratio, each variant at its own best block of rows, with 95 % interval; ~
-- where that includes 1. The times of onnxruntime's launches are added up without the gap between them, as its profiler
-- does; all others are spans, first start to last end.
--
-- says: repeated, where the published figure is within 2 % of the interval; not repeated; or another GPU than the
-- published one, with what happens here. best here: the fastest variant of the same case that does all of the work. tuned
-- launches one of them, which has its own row.
--
-- Figures: ROCm/aiter 3526 times its kernels in serving before the change alone, and says that one launch replaces them.
-- ONNX Runtime 29167: FC1 of gpt-oss-20b, one token, 21.42 us, split 17.59 + 2.39. aphrodite-engine 1603: Qwen3-30B, 512
-- tokens in and out, 0.4 % end to end; it ran with one split whatever its configuration said. SGLang 10567: down at 8192
-- tokens, 2164 to 2204 us before, 1377 to 1456 after. TensorRT-LLM 12686: its table of two tiles.
WITH claim (pull_request, op, section, tokens, conditions, variant, before, low, high, gpu) AS (
  VALUES ('ROCm/aiter 3526', 'topk_sort', 'gpt-oss-120b', 32, '{"launch":"stream"}', 'fused_one_block', 'chain3', 1, NULL, 'MI355X'),
         ('ROCm/aiter 3526', 'topk_sort', 'deepseek-r1', 64, '{"launch":"graph"}', 'fused_one_block', 'chain3', 1, NULL, 'MI355X'),
         ('ONNX Runtime 29167', 'qmoe_fc1_swiglu', 'gpt-oss-20b-fc1', 1, '{"cache":"warm","dtype":"fp16","scale-block":"0"}',
          'single_fp16_acc', 'single_fp32_acc', 1.538, 1.548, 'H200'),
         ('ONNX Runtime 29167', 'qmoe_fc1_swiglu', 'gpt-oss-20b-fc1', 1, '{"cache":"warm","dtype":"fp16","scale-block":"0"}',
          'split_k2_fp32_acc', 'single_fp32_acc', 1.072, 1.08, 'H200'),
         ('aphrodite-engine 1603', 'moe_gate_up', 'qwen3-30b-a3b-tp2', 512, '{}', 'gather_split_k1', 'gather', 1, 1.004, 'RTX 6000 Ada'),
         ('aphrodite-engine 1603', 'moe_gate_up', 'deepseek-r1-tp8', 1, '{}', 'split_k8', 'gather', NULL, NULL, 'RTX 6000 Ada'),
         ('SGLang 10567', 'moe_down', 'deepseek-r1-tp8-shared-prefill-down', 8192, '{"routing":"shared:zipf:0.67"}', 'tma_down', 'gather',
          1.486, 1.601, 'H20'),
         ('TensorRT-LLM 12686', 'dense_fc2', 'deepseek-r1-tp8', 288, '{}', 'alpha_per_expert_n64', 'alpha_per_k_tile_n64', 1.17, 1.17, 'B200'),
         ('TensorRT-LLM 12686', 'dense_fc2', 'deepseek-r1-tp8', 384, '{}', 'alpha_per_expert', 'alpha_per_k_tile', 1.064, 1.064, 'B200')
), measured AS (
  SELECT case_id, op, section, CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens, json_remove(params, '$.block') AS shape,
         variant, round, iif(op GLOB 'qmoe_*', sum_ns, l.span_ns) AS ns
  FROM level l JOIN result USING (result_id, case_id, variant) WHERE run_id = :run AND op IN (SELECT op FROM claim) AND backend = 'cuda'
), numbered AS (
  SELECT row_number() OVER () AS place, * FROM claim
), claimed AS (
  SELECT place, case_id, m.variant, round, ns, before
  FROM numbered c JOIN measured m USING (op, section, tokens)
  WHERE NOT EXISTS (SELECT 1 FROM json_each(conditions) j WHERE json_extract(shape, '$."' || j.key || '"') IS NOT j.value)
), best AS (  -- nth 1: a variant's fastest block of rows
  SELECT place, case_id, variant, exp(avg(ln(ns))) AS ns,
         row_number() OVER (PARTITION BY place, variant ORDER BY avg(ln(ns))) AS nth
  FROM claimed GROUP BY place, case_id, variant
), level_of AS (
  SELECT c.* FROM claimed c JOIN best b USING (place, case_id, variant) WHERE nth = 1
), ratio AS (  -- of each variant to the claim's before
  SELECT a.place, a.case_id, a.variant, avg(ln(b.ns / a.ns)) AS x, reach95(ln(b.ns / a.ns)) AS reach
  FROM level_of a JOIN level_of b ON b.place = a.place AND b.round = a.round AND b.variant = a.before
  WHERE a.variant <> a.before GROUP BY a.place, a.variant
), fastest AS (
  SELECT place, variant, x, reach, row_number() OVER (PARTITION BY place ORDER BY x DESC) AS nth FROM ratio
  WHERE variant NOT IN ('cublaslt_plain', 'tuned')
)
SELECT pull_request AS "pull request",
       section AS model,
       tokens,
       (SELECT key FROM bench_case b WHERE b.case_id = r.case_id) AS "case",
       c.before,
       round(b.ns / 1000, 2) AS "before us",
       c.variant,
       round(a.ns / 1000, 2) AS us,
       CASE WHEN low IS NULL THEN '' WHEN high IS NULL THEN 'faster' WHEN high - low < 0.01 THEN printf('%.2fx', high)
            ELSE printf('%.2f–%.2fx', low, high) END AS published,
       low AS "published low",
       high AS "published high",
       gpu AS "published on",
       speedup_text(r.x, r.reach, 2) AS here,
       interval_text(r.x, r.reach, 2) AS "95 % CI",
       speedup(r.x, r.reach) AS speedup,
       exp(r.x - r.reach) AS low,
       exp(r.x + r.reach) AS high,
       CASE WHEN low IS NULL THEN 'no figure published'
            WHEN ' ' || d.name || ' ' NOT LIKE '% ' || gpu || ' %' THEN 'another GPU'
            WHEN r.reach IS NULL THEN 'one process shows nothing'
            WHEN exp(r.x + r.reach) * 1.02 >= low AND exp(r.x - r.reach) <= 1.02 * coalesce(high, 1e9) THEN 'repeated'
            ELSE 'not repeated' END ||
       CASE WHEN r.reach IS NULL THEN '' WHEN r.x > r.reach THEN ', faster here' WHEN r.x < -r.reach THEN ', slower here'
            ELSE ', as fast here' END AS says,
       f.variant AS "best here",
       (SELECT round(ns / 1000, 2) FROM best WHERE best.place = c.place AND best.variant = f.variant AND nth = 1) AS "best us",
       printf('%.2fx', exp(f.x)) AS "best speed-up",
       exp(f.x) AS "best speedup",
       exp(f.x - f.reach) AS "best low",
       exp(f.x + f.reach) AS "best high"
FROM numbered c JOIN ratio r USING (place, variant)
JOIN best a ON a.place = c.place AND a.variant = c.variant AND a.nth = 1
JOIN best b ON b.place = c.place AND b.variant = c.before AND b.nth = 1
JOIN fastest f ON f.place = c.place AND f.nth = 1
JOIN run ON run.run_id = :run JOIN device d USING (device_id)
ORDER BY c.place
