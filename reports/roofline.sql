-- title: how close to this device's measured ceilings: bandwidth, rate, floor
-- SPDX-License-Identifier: Apache-2.0
-- Ceilings are those that `moegate doctor --db` measured on the same device; without them the last columns are
-- empty. floor us = max(bytes / bandwidth, operations / rate): no launch can be faster; writes that fit in
-- the cache need not reach memory in time and are left out of it.
WITH ceilings AS (
  SELECT max(iif(name = 'read_bytes_per_s', value, NULL)) AS bandwidth,
         max(iif(name IN ('bf16_flops', 'fp8_flops'), value, NULL)) AS rate
  FROM ceiling WHERE device_id = (SELECT device_id FROM run WHERE run_id = :run)
), level AS (
  SELECT case_id, variant, exp(avg(ln(span_ns))) AS ns
  FROM result r JOIN process USING (process_id)
  WHERE run_id = :run AND r.status IN ('ok', 'noisy') AND samples > 0
  GROUP BY case_id, variant
), roof AS (
  SELECT level.*, bandwidth, rate,
         1e9 * max((read_bytes + max(0, write_bytes - cache_bytes)) / bandwidth,
                   coalesce(flops / rate, 0)) AS floor_ns
  FROM level JOIN bench_case USING (case_id), ceilings,
       (SELECT cache_bytes FROM device JOIN run USING (device_id) WHERE run_id = :run)
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
FROM roof JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run
ORDER BY suite, section, op, CAST(params ->> 'tokens' AS INTEGER), key, variant
