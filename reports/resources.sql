-- title: what every kernel takes of an SM: registers, local and shared memory, blocks per SM, waves
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; #; kernel; registers; local bytes; blocks per SM
-- blocks per SM is what registers, shared memory and threads allow, on devices whose limits this program knows; waves
-- is how often such blocks fill the device until the grid is done. Clusters are not looked at, and persistent kernels
-- have few warps on purpose. local bytes is of a thread: spills, and arrays that are indexed.
WITH shapes AS (
  SELECT DISTINCT case_id, variant, ordinal, shape_id
  FROM process CROSS JOIN result USING (process_id) CROSS JOIN launch USING (result_id)
  WHERE run_id = :run
), launched AS (
  SELECT suite, section, op, params, key, variant, ordinal, k.name AS kernel, registers, local_bytes,
         static_shared, dynamic_shared, grid, block, cluster, processors,
         blocks_per_sm(class, block, registers, static_shared + dynamic_shared) AS per_sm
  FROM shapes JOIN launch_shape k USING (shape_id)
  JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
  JOIN run USING (run_id) JOIN device USING (device_id)
  WHERE run_id = :run
)
SELECT section AS model,
       key AS "case",
       variant,
       ordinal + 1 AS "#",
       kernel,
       registers,
       nullif(local_bytes, -1) AS "local bytes",
       static_shared AS "static shared",
       dynamic_shared AS "dynamic shared",
       block,
       cluster,
       per_sm AS "blocks per SM",
       round(CAST(extent_size(grid) AS REAL) / per_sm / processors, 2) AS waves
FROM launched
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant, ordinal, kernel
