-- title: Accuracy of the newest run, worst over its processes
-- SPDX-License-Identifier: Apache-2.0
SELECT output,
       iif(min(a.ok), 'ok', 'wrong') AS "output is",
       max(mismatches) AS mismatches,
       max(nonfinite) AS nonfinite,
       max(rel_l2) AS rel_l2,
       max(max_abs) AS max_abs,
       max(worst_row) AS worst_row,
       iif(min(deterministic), 'yes', 'no') AS deterministic,
       max(code) AS "code hash",
       max(a.why) AS why
FROM bench_case JOIN process ON process.run_id = :run
JOIN result r ON r.process_id = process.process_id AND r.case_id = bench_case.case_id AND r.variant = :variant
JOIN verified_output a USING (verification_id)
WHERE key = :case
GROUP BY output
ORDER BY output
