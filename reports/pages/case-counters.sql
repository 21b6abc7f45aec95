-- title: Counters and other numbers, of the newest run that has them
-- SPDX-License-Identifier: Apache-2.0
-- kernel: number of the launch; empty for all of it. CROSS JOIN: in this order, so that few rows are read.
WITH mine AS (
  SELECT run.run_id, task, result_id
  FROM run CROSS JOIN process USING (run_id) CROSS JOIN bench_case
  CROSS JOIN result r ON r.process_id = process.process_id AND r.case_id = bench_case.case_id AND r.variant = :variant
  WHERE key = :case AND (run.run_id = :run OR task <> 'measure')
)
SELECT name,
       iif(ordinal < 0, NULL, ordinal + 1) AS kernel,
       avg(value) AS value,
       unit,
       task,
       run_id AS run
FROM mine JOIN metric USING (result_id)
WHERE run_id = (SELECT max(run_id) FROM mine m WHERE m.task = mine.task)
GROUP BY task, name, ordinal
ORDER BY task, ordinal, name
