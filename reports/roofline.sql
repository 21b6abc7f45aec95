-- title: how close to this device's measured ceilings: bandwidth, rate, floor
-- SPDX-License-Identifier: Apache-2.0
-- Ceilings are those that `moegate doctor --db` measured on the same device; without them the last columns are
-- empty. floor us = max(bytes / bandwidth, operations / rate): no launch can be faster; writes that fit in
-- the cache need not reach memory in time and are left out of it. So % of bandwidth, which counts all bytes, may
-- exceed 100 where the last writes stay in the cache.
WITH roofline AS (
  SELECT cell.*, bandwidth, rate, flops, read_bytes, write_bytes, key,
         max(memory_ns(read_bytes, write_bytes, cache_bytes, bandwidth), coalesce(products_ns(flops, rate), 0)) AS floor_ns
  FROM cell JOIN bench_case USING (case_id) JOIN ceilings USING (run_id)
  WHERE run_id = :run AND (:op IS NULL OR cell.op = :op)
)
SELECT section AS model,
       key AS "case",
       variant,
       round(ns / 1000, 3) AS us,
       round((read_bytes + write_bytes) / 1e6, 3) AS MB,
       round((read_bytes + write_bytes) / ns, 1) AS "GB/s",
       round(flops / ns / 1000, 3) AS "TFLOP/s",
       round(100e9 * (read_bytes + write_bytes) / ns / bandwidth, 1) AS "% of bandwidth",
       round(100e9 * flops / ns / rate, 1) AS "% of rate",
       round(floor_ns / 1000, 3) AS "floor us",
       round(100 * floor_ns / ns, 1) AS "% of roofline"
FROM roofline
ORDER BY suite, section, op, CAST(params ->> 'tokens' AS INTEGER), key, variant
