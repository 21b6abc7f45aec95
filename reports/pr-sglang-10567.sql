-- title: sorted activations and TMA as SGLang PR 10567 tabulates them: gate-up, down and both, beside its own figures
-- SPDX-License-Identifier: Apache-2.0
-- keep: route; gate-up us; gate-up speed-up; both us; both speed-up
-- people: gate-up speed-up; down speed-up; both speed-up
-- programs: gate-up case; gate-up speedup; gate-up low; gate-up high; down case; down speedup; down low; down high; both speedup; both low; both high
-- One row per model, tokens and route: a variant of gate-up with the down GEMM that goes with it, which for sorted_rows is
-- tma_down. Both start from the same blocks of rows (BM), those with which their sum is least. us are spans, first start to
-- last end. Speed-up against the route gather at its own best block, with 95 % interval; ~ where that includes 1 or does
-- not exist. other: what varies beside model, tokens and block.
-- Floors of down: bytes / bandwidth and operations / rate, the larger of which no launch can beat, at the ceilings that
-- `moegate doctor --db` measured on the same device; without them they are empty. Writes that fit in the cache are left out.
-- The same two on an H20 by its data sheet (4.0 TB/s; 296 TFLOP/s of fp8, 148 of bf16): where another one is the larger, the
-- PR's ratio need not be seen.
--
-- The published columns are not measured here: SGLang PR 10567, H20-96GB, DeepSeek-R1 TP8, block 64. 8192 tokens: its table
-- over three tile orders, and in brackets untuned and tuned; 16372 tokens: a serving profile per layer, whose before is
-- twice the mean of both GEMMs. Its routing was recorded from prompts, so that the figures stand by zipf alone; whether the
-- shared expert was one of 257 is not said, so that they stand by both.
WITH published (tokens, route, gate_up, down, layer) AS (
  VALUES ('8192', 'gather', '2309 to 2311', '2164 to 2204 (2430)', NULL),
         ('8192', 'sorted_rows + tma_down', '2289 to 2292', '1377 to 1456 (1435)', NULL),
         ('16372', 'gather', NULL, NULL, '8766'),
         ('16372', 'sorted_rows + tma_down', '4061', '2471', '6532')
), measured AS (
  SELECT case_id, op = 'moe_down' AS is_down, replace(replace(section, '-gate-up', ''), '-down', '') AS model,
         json_remove(params, '$.block') AS shape, json_extract(params, '$.block') AS block, round, span_ns, backend,
         judged,
         iif(backend = 'cuda' AND variant IN ('sorted_rows', 'tma_down'), 'sorted_rows + tma_down', variant) AS route
  FROM level WHERE run_id = :run AND op IN ('moe_gate_up', 'moe_down')
), gemm AS (
  SELECT model, shape, route, block, is_down, case_id, exp(avg(ln(span_ns))) AS ns
  FROM measured GROUP BY model, shape, route, block, is_down
), best AS (  -- the block of a route; one with both GEMMs before one without
  SELECT model, shape, route, block,
         row_number() OVER (PARTITION BY model, shape, route ORDER BY count(*) DESC, sum(ns), block) AS place
  FROM gemm GROUP BY model, shape, route, block
), layer AS (  -- per process; is_down 2: both
  SELECT m.model, m.shape, m.route, m.round, is_down, judged
  FROM measured m JOIN best USING (model, shape, route, block) WHERE place = 1
  UNION ALL
  SELECT m.model, m.shape, m.route, m.round, 2, sum(span_ns)
  FROM measured m JOIN best USING (model, shape, route, block) WHERE place = 1 AND backend = 'cuda'
  GROUP BY m.model, m.shape, m.route, m.round HAVING count(*) = 2
), change AS (
  SELECT a.model, a.shape, a.route, a.is_down, avg(ln(b.judged / a.judged)) AS x,
         reach95(ln(b.judged / a.judged)) AS reach
  FROM layer a JOIN layer b USING (model, shape, round, is_down)
  WHERE b.route = 'gather' AND a.route <> 'gather' AND a.judged > 0 AND b.judged > 0
  GROUP BY a.model, a.shape, a.route, a.is_down
), speedup AS (
  SELECT model, shape, route, is_down,
         speedup_with_interval(x, reach, 2) AS text, speedup(x, reach) AS speedup, exp(x - reach) AS low, exp(x + reach) AS high
  FROM change
), both AS (
  SELECT model, shape, route, text AS both_text, speedup AS both_speedup, low AS both_low, high AS both_high
  FROM speedup WHERE is_down = 2
), varies AS (  -- within a model, which here is two sections
  SELECT model, j.key AS name FROM best, json_each(shape) j GROUP BY model, j.key HAVING count(DISTINCT j.value) > 1
), placed AS (
  SELECT gemm.*, key, memory_ns, products_ns, text, speedup, low, high, 100 * max(memory_ns, coalesce(products_ns, 0)) / ns AS percent,
         memory_ns(read_bytes, write_bytes, 0, 4.0e12) AS h20_memory_ns,
         products_ns(flops, iif(json_extract(params, '$.dtype') = 'bf16', 148e12, 296e12)) AS h20_products_ns
  FROM gemm JOIN best USING (model, shape, route, block) JOIN bench_case USING (case_id)
  JOIN roof ON roof.case_id = gemm.case_id AND roof.run_id = :run
  LEFT JOIN speedup USING (model, shape, route, is_down)
  WHERE place = 1
)
SELECT model,
       CAST(json_extract(shape, '$.tokens') AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(shape) j
        WHERE j.key <> 'tokens' AND EXISTS (SELECT 1 FROM varies v WHERE v.model = placed.model AND v.name = j.key)) AS other,
       placed.route,
       block,
       round(max(ns) FILTER (WHERE NOT is_down) / 1000, 1) AS "gate-up us",
       max(placed.text) FILTER (WHERE NOT is_down) AS "gate-up speed-up",
       round(max(percent) FILTER (WHERE NOT is_down), 1) AS "gate-up % of floor",
       round(max(ns) FILTER (WHERE is_down) / 1000, 1) AS "down us",
       max(placed.text) FILTER (WHERE is_down) AS "down speed-up",
       round(max(percent) FILTER (WHERE is_down), 1) AS "down % of floor",
       CASE WHEN count(*) = 2 THEN round(sum(ns) / 1000, 1) END AS "both us",
       both_text AS "both speed-up",
       max(key) FILTER (WHERE NOT is_down) AS "gate-up case",
       max(placed.speedup) FILTER (WHERE NOT is_down) AS "gate-up speedup",
       max(placed.low) FILTER (WHERE NOT is_down) AS "gate-up low",
       max(placed.high) FILTER (WHERE NOT is_down) AS "gate-up high",
       max(key) FILTER (WHERE is_down) AS "down case",
       max(placed.speedup) FILTER (WHERE is_down) AS "down speedup",
       max(placed.low) FILTER (WHERE is_down) AS "down low",
       max(placed.high) FILTER (WHERE is_down) AS "down high",
       both_speedup AS "both speedup",
       both_low AS "both low",
       both_high AS "both high",
       round(max(memory_ns) FILTER (WHERE is_down) / 1000, 1) AS "down floor us: memory",
       round(max(products_ns) FILTER (WHERE is_down) / 1000, 1) AS "down floor us: products",
       round(max(h20_memory_ns) FILTER (WHERE is_down) / 1000, 1) AS "on an H20: memory",
       round(max(h20_products_ns) FILTER (WHERE is_down) / 1000, 1) AS "on an H20: products",
       p.gate_up AS "published gate-up us, H20",
       p.down AS "published down us, H20",
       p.layer AS "published both us, H20"
FROM placed
LEFT JOIN both USING (model, shape, route)
LEFT JOIN published p ON p.route = placed.route AND p.tokens = json_extract(shape, '$.tokens') AND json_extract(shape, '$.hidden') = '7168'
     AND json_extract(shape, '$.inter') = '256' AND json_extract(shape, '$.experts') IN ('256', '257') AND json_extract(shape, '$.routing') GLOB '*zipf:*'
GROUP BY model, shape, placed.route
ORDER BY model, tokens, shape, placed.route <> 'gather', placed.route <> 'scalar_b_scale',
         placed.route <> 'sorted_rows + tma_down', placed.route
