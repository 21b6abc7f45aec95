-- title: Spans of every process of the newest run, in us: 5 to 95 % as a line, quartiles as a box; lower is better
-- SPDX-License-Identifier: Apache-2.0
-- From the samples that were kept; a store that was pruned has none of older runs.
SELECT place,
       round + 1 AS process,
       samples,
       span_quantile(spans, 0) / 1000 AS least,
       span_quantile(spans, 0.05) / 1000 AS "5 %",
       span_quantile(spans, 0.25) / 1000 AS "25 %",
       span_quantile(spans, 0.5) / 1000 AS median,
       span_quantile(spans, 0.75) / 1000 AS "75 %",
       span_quantile(spans, 0.95) / 1000 AS "95 %",
       span_quantile(spans, 1) / 1000 AS most,
       status
FROM asked_result CROSS JOIN result r USING (result_id) CROSS JOIN sample USING (result_id)
ORDER BY place, result_id
