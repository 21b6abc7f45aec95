-- title: Counters and other numbers, of the newest run that has them
-- SPDX-License-Identifier: Apache-2.0
-- kernel: number of the launch; empty for all of it. CROSS JOIN: in this order, so that few rows are read.
WITH profiled AS MATERIALIZED (  -- by other tasks than measuring
  SELECT place, task, max(run.run_id) AS run_id
  FROM run CROSS JOIN process USING (run_id) CROSS JOIN result r USING (process_id)
  CROSS JOIN asked a ON a.case_id = r.case_id AND a.variant = r.variant
  WHERE task <> 'measure'
  GROUP BY place, task
), mine AS (
  SELECT place, 'measure' AS task, run_id, result_id FROM asked_result CROSS JOIN asked USING (place)
  UNION ALL
  SELECT place, task, p.run_id, result_id
  FROM profiled p CROSS JOIN asked a USING (place) CROSS JOIN process ON process.run_id = p.run_id
  CROSS JOIN result r ON r.process_id = process.process_id AND r.case_id = a.case_id AND r.variant = a.variant
)
SELECT place,
       name,
       iif(ordinal < 0, NULL, ordinal + 1) AS kernel,
       avg(value) AS value,
       unit,
       task,
       run_id AS run
FROM mine CROSS JOIN metric_value USING (result_id) CROSS JOIN metric_name USING (metric_id)
GROUP BY place, task, ordinal, name
ORDER BY place, task, ordinal, name
