-- title: Coverage: what did not run, and why
-- SPDX-License-Identifier: Apache-2.0
-- Rows without a latency, and cases of the run without any result.
WITH gone AS (
  SELECT r.status,
         op AS operator,
         key AS "case",
         r.variant,
         count(*) AS processes,
         max(r.why) AS why
  FROM process p CROSS JOIN result r INDEXED BY result_bad USING (process_id) JOIN bench_case USING (case_id)
  WHERE run_id = :run AND r.status NOT IN ('ok', 'noisy')
  GROUP BY r.status, case_id, r.variant
  UNION ALL
  SELECT 'not run', op, key, '', 0, 'no result: left out for want of time, or the run ended before'
  FROM run_case JOIN bench_case USING (case_id)
  WHERE run_id = :run AND NOT EXISTS (SELECT 1 FROM process JOIN result r USING (process_id)
                                      WHERE process.run_id = :run AND r.case_id = run_case.case_id)
)
SELECT * FROM gone ORDER BY status = 'unsupported', status, "case", variant
