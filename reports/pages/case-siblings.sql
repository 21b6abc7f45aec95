-- title: Variants of this case in the same run
-- SPDX-License-Identifier: Apache-2.0
SELECT key AS "case",
       r.variant,
       round(exp(avg(CASE WHEN r.status IN ('ok', 'noisy') AND span_ns > 0 THEN ln(span_ns) END)) / 1000, 3) AS us,
       group_concat(DISTINCT r.status) AS status
FROM bench_case JOIN process ON process.run_id = :run
JOIN result r ON r.process_id = process.process_id AND r.case_id = bench_case.case_id
WHERE key = :case
GROUP BY r.variant
ORDER BY us IS NULL, us, r.variant
