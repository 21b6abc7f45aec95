-- title: a whole MoE layer against the least times of its steps: percent of their sum, and of what no layer can beat
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; us; % of sum of floors; % of floor; floor us
-- people: launches us
-- programs: case
-- One row per case and variant of fused_moe. Least times are those of cold launches at the ceilings that `moegate doctor
-- --db` measured on the same device; without them they are empty. floor us: of the layer's operands and operations alone.
-- sum of floors us: each step's, max(bytes / bandwidth, operations / rate), added up. The steps are align, gate-up, silu (the
-- activation with its quantisation), down and sum, and where input = bf16 the quantisation of x; each reads what the one before
-- wrote, from memory, and writes that fit in the cache do not count. A variant that joins steps moves less, so that it may come
-- below the sum.
-- launches us: time of each launch in order. Launches that begin before the one before has ended overlap; such times add up
-- to more than us.
WITH layer AS (
  SELECT run_id, case_id, cache_bytes, bandwidth, fp8, T, T * (json_extract(params, '$.topk')) AS R, json_extract(params, '$.hidden') AS H,
         json_extract(params, '$.inter') AS I, json_extract(params, '$.input') AS input,
         json_extract(facts, '$.active_experts') AS D, json_extract(facts, '$.padded_rows') AS P
  FROM (SELECT *, CAST(json_extract(params, '$.tokens') AS INTEGER) AS T FROM run_case JOIN bench_case USING (case_id))
  JOIN ceilings USING (run_id)
  WHERE run_id = :run AND op = 'fused_moe'
), step (case_id, name, ns) AS (  -- weights and ids are read by both products; four bytes for each scale factor of 128
  SELECT case_id, 'align', memory_ns(4.0 * R, 4.0 * P, cache_bytes, bandwidth) FROM layer
  UNION ALL
  SELECT case_id, 'input', memory_ns(2.0 * T * H, T * H * (1 + 4.0 / 128), cache_bytes, bandwidth) FROM layer WHERE input = 'bf16'
  UNION ALL
  SELECT case_id, 'gate-up',
         max(memory_ns(D * 2.0 * I * H * (1 + 4.0 / 128 / 128) + T * H * (1 + 4.0 / 128) + 4.0 * P, 4.0 * R * I, cache_bytes,
                       bandwidth), coalesce(products_ns(4.0 * R * I * H, fp8), 0))
  FROM layer
  UNION ALL
  SELECT case_id, 'silu', memory_ns(4.0 * R * I, R * I * (1 + 4.0 / 128), cache_bytes, bandwidth) FROM layer
  UNION ALL
  SELECT case_id, 'down',
         max(memory_ns(D * 1.0 * I * H * (1 + 4.0 / 128 / 128) + R * I * (1 + 4.0 / 128) + 4.0 * R + 4.0 * P, 2.0 * R * H,
                       cache_bytes, bandwidth), coalesce(products_ns(2.0 * R * I * H, fp8), 0))
  FROM layer
  UNION ALL
  SELECT case_id, 'sum', memory_ns(2.0 * R * H, 2.0 * T * H, cache_bytes, bandwidth) FROM layer
), floors AS (
  SELECT case_id, sum(ns) AS sum_ns, max(ns) FILTER (WHERE name = 'gate-up') AS gate_up_ns,
         max(ns) FILTER (WHERE name = 'silu') AS silu_ns, max(ns) FILTER (WHERE name = 'down') AS down_ns,
         max(ns) FILTER (WHERE name = 'sum') AS sum_step_ns
  FROM step GROUP BY case_id
), launches AS (
  SELECT case_id, variant, group_concat(us, ' + ') AS text
  FROM (SELECT case_id, variant, ordinal, printf('%.1f', avg(ns) / 1000) AS us
        FROM kernel JOIN result USING (result_id) JOIN process USING (process_id)
        WHERE run_id = :run GROUP BY case_id, variant, ordinal ORDER BY case_id, variant, ordinal)
  GROUP BY case_id, variant
)
SELECT section AS model,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       json_extract(params, '$.routing') AS routing,
       (SELECT key FROM bench_case c WHERE c.case_id = cell.case_id) AS "case",
       variant,
       round(ns / 1000, 1) AS us,
       round(100 * sum_ns / ns, 1) AS "% of sum of floors",
       round(100 * max(memory_ns, coalesce(products_ns, 0)) / ns, 1) AS "% of floor",
       text AS "launches us",
       round(sum_ns / 1000, 1) AS "sum of floors us",
       round(gate_up_ns / 1000, 1) AS "gate-up",
       round(silu_ns / 1000, 1) AS silu,
       round(down_ns / 1000, 1) AS down,
       round(sum_step_ns / 1000, 1) AS sum,
       round(max(memory_ns, coalesce(products_ns, 0)) / 1000, 1) AS "floor us"
FROM cell JOIN floors USING (case_id) JOIN roof USING (run_id, case_id) LEFT JOIN launches USING (case_id, variant)
WHERE run_id = :run
ORDER BY suite, section, CAST(json_extract(params, '$.tokens') AS INTEGER), routing, ns
