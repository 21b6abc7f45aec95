-- title: Launches of the newest run, means over its processes, in us
-- SPDX-License-Identifier: Apache-2.0
-- gap: since the launch before ended, negative where they overlap.
WITH launch AS (
  SELECT ordinal, k.name, avg(ns) / 1000 AS us, avg(gap_ns) / 1000 AS gap, grid, block, cluster, registers,
         static_shared + dynamic_shared AS shared
  FROM bench_case JOIN process ON process.run_id = :run
  JOIN result r ON r.process_id = process.process_id AND r.case_id = bench_case.case_id AND r.variant = :variant
  JOIN kernel k USING (result_id)
  WHERE key = :case
  GROUP BY ordinal, k.name, grid, block, cluster
)
SELECT ordinal + 1 AS launch,
       name AS kernel,
       round(sum(iif(ordinal = 0, 0, gap) + us) OVER (ORDER BY ordinal) - us, 3) AS start,
       round(us, 3) AS us,
       round(gap, 3) AS gap,
       grid,
       block,
       cluster,
       registers,
       shared AS "shared bytes"
FROM launch
ORDER BY ordinal
