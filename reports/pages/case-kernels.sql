-- title: Launches of the newest run, means over its processes, in us
-- SPDX-License-Identifier: Apache-2.0
-- gap: since the launch before ended, negative where they overlap.
WITH mine AS (
  SELECT place, ordinal, shape_id, avg(ns) / 1000 AS us, avg(gap_ns) / 1000 AS gap
  FROM asked_result CROSS JOIN launch USING (result_id)
  GROUP BY place, ordinal, shape_id
)
SELECT place,
       ordinal + 1 AS launch,
       name AS kernel,
       round(sum(iif(ordinal = 0, 0, gap) + us) OVER (PARTITION BY place ORDER BY ordinal) - us, 3) AS start,
       round(us, 3) AS us,
       round(gap, 3) AS gap,
       grid,
       block,
       cluster,
       registers,
       static_shared + dynamic_shared AS "shared bytes"
FROM mine CROSS JOIN launch_shape USING (shape_id)
ORDER BY place, ordinal
