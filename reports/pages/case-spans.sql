-- title: Spans of every process of the newest run, in us: 5 to 95 % as a line, quartiles as a box; lower is better
-- SPDX-License-Identifier: Apache-2.0
-- From the samples that were kept; a store that was pruned has none of older runs.
WITH mine AS MATERIALIZED (  -- unpacked once
  SELECT round, r.samples, spans, r.status, process.process_id
  FROM bench_case JOIN process ON process.run_id = :run
  JOIN result r ON r.process_id = process.process_id AND r.case_id = bench_case.case_id AND r.variant = :variant
  JOIN sample USING (result_id)
  WHERE key = :case
)
SELECT round + 1 AS process,
       samples,
       span_quantile(spans, 0) / 1000 AS least,
       span_quantile(spans, 0.05) / 1000 AS "5 %",
       span_quantile(spans, 0.25) / 1000 AS "25 %",
       span_quantile(spans, 0.5) / 1000 AS median,
       span_quantile(spans, 0.75) / 1000 AS "75 %",
       span_quantile(spans, 0.95) / 1000 AS "95 %",
       span_quantile(spans, 1) / 1000 AS most,
       status
FROM mine
ORDER BY process_id
