-- title: split-K as aphrodite-engine PR 1603 submitted and as it meant it: gate-up, with and without zeroing the output
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; us; speed-up; 95 % CI; speed-up without zeroing; % of floor
-- people: speed-up; 95 % CI; speed-up without zeroing; expected speed-up
-- programs: case; speedup; low; high; GEMM speedup; GEMM low; GEMM high; expected speedup
-- One row per model, tokens and variant, at the block (BM) with which the variant is fastest. us is the span, first start to
-- last end; a split variant's launches are the zeroing of the output and the GEMM. Speed-up against gather at its own best
-- block, of spans and, for a variant that zeroes, of the GEMM launch alone; ~ where the 95 % interval includes 1 or does not
-- exist. other: what varies beside model, tokens and block.
-- floor us: bytes / bandwidth and operations / rate, the larger of which no launch can beat, at the ceilings that `moegate
-- doctor --db` measured on the same device; without them it is empty. Writes that fit in the cache are left out of it.
--
-- The last two columns are not measured here. The PR launches its kernel with one split whatever its configuration says, so
-- that gather_split_k1 is what it ran and 1.00 is expected; split_k2 to split_k8 are what it meant. It published one figure:
-- Qwen3-30B-A3B-FP8, 512 tokens in and out, on two RTX 6000 Ada.
WITH published (experts, hidden, inter, variant, gain) AS (
  VALUES ('128', '2048', '384', 'gather_split_k1', '~0.4 % end to end')
), measured AS (
  SELECT result_id, case_id, section AS model, json_remove(params, '$.block') AS shape, json_extract(params, '$.block') AS block, variant,
         round, span_ns, judged,
         (SELECT sum(ns) FROM kernel k WHERE k.result_id = l.result_id AND name GLOB '*zero_kernel*') AS zero_ns,
         (SELECT sum(ns) FROM kernel k WHERE k.result_id = l.result_id AND name NOT GLOB '*zero_kernel*') AS gemm_ns
  FROM level l WHERE run_id = :run AND op = 'moe_gate_up'
), placed AS (
  SELECT model, shape, variant, block, case_id, exp(avg(ln(span_ns))) AS ns, avg(zero_ns) AS zero_ns, avg(gemm_ns) AS gemm_ns,
         row_number() OVER (PARTITION BY model, shape, variant ORDER BY avg(ln(span_ns)), block) AS place
  FROM measured GROUP BY case_id, variant
), best AS (
  SELECT m.* FROM measured m JOIN placed USING (case_id, variant) WHERE place = 1
), change AS (
  SELECT a.case_id, a.variant, avg(ln(b.judged / a.judged)) AS x,
         reach95(ln(b.judged / a.judged)) AS reach,
         avg(ln(b.gemm_ns / a.gemm_ns)) AS gemm_x, reach95(ln(b.gemm_ns / a.gemm_ns)) AS gemm_reach
  FROM best a JOIN best b USING (model, shape, round)
  WHERE b.variant = 'gather' AND a.variant <> 'gather' AND a.judged > 0 AND b.judged > 0
  GROUP BY a.case_id, a.variant
)
SELECT model,
       CAST(json_extract(shape, '$.tokens') AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(shape) j
        WHERE j.key <> 'tokens'
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = placed.model AND v.name = j.key)) AS other,
       (SELECT key FROM bench_case c WHERE c.case_id = placed.case_id) AS "case",
       placed.variant,
       block,
       round(ns / 1000, 2) AS us,
       round(zero_ns / 1000, 2) AS "zeroing us",
       CASE WHEN zero_ns THEN round(gemm_ns / 1000, 2) END AS "GEMM us",
       speedup_text(x, reach, 3) AS "speed-up",
       interval_text(x, reach, 3) AS "95 % CI",
       speedup(x, reach) AS speedup,
       exp(x - reach) AS low,
       exp(x + reach) AS high,
       CASE WHEN zero_ns IS NOT NULL THEN speedup_text(gemm_x, gemm_reach, 3) END AS "speed-up without zeroing",
       CASE WHEN zero_ns IS NOT NULL THEN speedup(gemm_x, gemm_reach) END AS "GEMM speedup",
       CASE WHEN zero_ns IS NOT NULL THEN exp(gemm_x - gemm_reach) END AS "GEMM low",
       CASE WHEN zero_ns IS NOT NULL THEN exp(gemm_x + gemm_reach) END AS "GEMM high",
       round(memory_ns / 1000, 2) AS "floor us: memory",
       round(products_ns / 1000, 2) AS "floor us: products",
       round(100 * max(memory_ns, coalesce(products_ns, 0)) / ns, 1) AS "% of floor",
       iif(placed.variant = 'gather_split_k1', '1.00', NULL) AS "expected speed-up",
       iif(placed.variant = 'gather_split_k1', 1, NULL) AS "expected speedup",
       gain AS "published gain"
FROM placed LEFT JOIN change USING (case_id, variant) JOIN roof USING (case_id)
LEFT JOIN published p ON p.variant = placed.variant AND experts = json_extract(shape, '$.experts') AND hidden = json_extract(shape, '$.hidden')
     AND inter = json_extract(shape, '$.inter')
WHERE place = 1 AND roof.run_id = :run
ORDER BY model, tokens, shape, placed.variant <> 'gather', placed.variant <> 'gather_split_k1', placed.variant NOT GLOB 'split_k*',
         placed.variant
