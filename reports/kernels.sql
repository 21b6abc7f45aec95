-- title: the launches inside every variant: kernels, shapes, time and the gaps between them
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; #; kernel; us; gap us
-- us and gap are means over the processes; gap is the time since the previous launch ended.
-- Summed up by the number of the shape before anything has a name.
WITH launched AS (
  SELECT case_id, variant, ordinal, shape_id, sum(ns) AS ns, sum(gap_ns) AS gap_ns, count(*) AS n
  FROM process CROSS JOIN result USING (process_id) CROSS JOIN launch USING (result_id)
  WHERE run_id = :run
  GROUP BY case_id, variant, ordinal, shape_id
)
SELECT section AS model,
       key AS "case",
       variant,
       ordinal + 1 AS "#",
       k.name AS kernel,
       round(sum(ns) / sum(n) / 1000, 3) AS us,
       round(sum(gap_ns) / sum(n) / 1000, 3) AS "gap us",
       grid,
       block,
       cluster,
       registers,
       static_shared + dynamic_shared AS "shared bytes"
FROM launched JOIN launch_shape k USING (shape_id)
JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run
GROUP BY case_id, variant, ordinal, k.name, grid, block, cluster
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant, ordinal, k.name
