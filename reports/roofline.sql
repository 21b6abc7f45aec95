-- title: how close to this device's measured ceilings: bandwidth, rate, floor
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; us; GB/s; % of bandwidth; % of rate; % of roofline
-- Ceilings are those that `moegate doctor --db` measured on the same device; without them the last columns are
-- empty. floor us = max(bytes / bandwidth, operations / rate): no launch can be faster; writes that fit in
-- the cache need not reach memory in time and are left out of it. So % of bandwidth, which counts all bytes, may
-- exceed 100 where the last writes stay in the cache. The rate is that of fp8 products (int8 has the same), or of bf16.
-- DRAM MB is what the newest `moegate profile` of the same program counted, read and written; MB what the operator says
-- that a launch must move.
WITH counted AS (
  SELECT c.run_id FROM run c JOIN run r ON r.run_id = :run
  WHERE c.task = 'counters' AND c.status = 'complete' AND c.program = r.program AND r.program <> ''
  ORDER BY c.run_id DESC LIMIT 1
), dram AS (
  SELECT case_id, variant, sum(value) AS dram_bytes
  FROM counted JOIN process USING (run_id) JOIN result USING (process_id) JOIN metric USING (result_id)
  WHERE ordinal = -1 AND name IN ('dram__bytes_read.sum', 'dram__bytes_write.sum')
  GROUP BY case_id, variant
), roofline AS (
  SELECT cell.*, bandwidth, products_ns, flops, read_bytes, write_bytes, key,
         max(memory_ns, coalesce(products_ns, 0)) AS floor_ns
  FROM cell JOIN bench_case USING (case_id) JOIN roof USING (run_id, case_id) JOIN ceilings USING (run_id)
  WHERE run_id = :run AND (:op IS NULL OR cell.op = :op)
)
SELECT section AS model,
       key AS "case",
       variant,
       round(ns / 1000, 3) AS us,
       round((read_bytes + write_bytes) / 1e6, 3) AS MB,
       round(dram_bytes / 1e6, 3) AS "DRAM MB",
       round((read_bytes + write_bytes) / ns, 1) AS "GB/s",
       round(flops / ns / 1000, 3) AS "TFLOP/s",
       round(100e9 * (read_bytes + write_bytes) / ns / bandwidth, 1) AS "% of bandwidth",
       round(100 * products_ns / ns, 1) AS "% of rate",
       round(floor_ns / 1000, 3) AS "floor us",
       round(100 * floor_ns / ns, 1) AS "% of roofline"
FROM roofline LEFT JOIN dram USING (case_id, variant)
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant
