-- title: Variants of this case in the same run
-- SPDX-License-Identifier: Apache-2.0
SELECT place,
       key AS "case",
       r.variant,
       round(exp(avg(CASE WHEN r.status IN ('ok', 'noisy') AND span_ns > 0 THEN ln(span_ns) END)) / 1000, 3) AS us,
       statuses(r.status) AS status
FROM asked a CROSS JOIN process USING (run_id)
CROSS JOIN result r ON r.process_id = process.process_id AND r.case_id = a.case_id
GROUP BY place, r.variant
ORDER BY place, us IS NULL, us, r.variant
