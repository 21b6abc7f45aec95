-- title: Counters and other numbers, of the newest run that has them
-- SPDX-License-Identifier: Apache-2.0
-- kernel: number of the launch; empty for all of it.
WITH mine AS (
  SELECT run_id, task, result_id FROM bench_case JOIN result r USING (case_id) JOIN process USING (process_id)
  JOIN run USING (run_id) WHERE key = :case AND r.variant = :variant
)
SELECT name,
       iif(ordinal < 0, NULL, ordinal + 1) AS kernel,
       avg(value) AS value,
       unit,
       task,
       run_id AS run
FROM metric JOIN mine USING (result_id)
WHERE run_id = (SELECT max(run_id) FROM mine m WHERE m.task = mine.task)
GROUP BY task, name, ordinal
ORDER BY task, ordinal, name
