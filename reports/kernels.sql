-- title: the launches inside every variant: kernels, shapes, time and the gaps between them
-- SPDX-License-Identifier: Apache-2.0
-- us and gap are means over the processes; gap is the time since the previous launch ended.
SELECT section AS model,
       key AS "case",
       variant,
       ordinal + 1 AS "#",
       k.name AS kernel,
       round(avg(ns) / 1000, 3) AS us,
       round(avg(gap_ns) / 1000, 3) AS "gap us",
       grid,
       block,
       cluster,
       registers,
       static_shared + dynamic_shared AS "shared bytes"
FROM kernel k JOIN result r USING (result_id) JOIN process p USING (process_id)
JOIN bench_case USING (case_id) JOIN run_case rc USING (run_id, case_id)
WHERE run_id = :run
GROUP BY case_id, variant, ordinal, k.name, grid, block, cluster
ORDER BY suite, section, op, CAST(params ->> 'tokens' AS INTEGER), key, variant, ordinal, k.name
