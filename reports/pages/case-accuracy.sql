-- title: Accuracy of the newest run, worst over its processes
-- SPDX-License-Identifier: Apache-2.0
-- Processes of one code and seed found the same, as a rule: each finding is looked up once.
WITH mine AS MATERIALIZED (
  SELECT place, verification_id, min(deterministic) AS deterministic, max(code) AS code
  FROM asked_result CROSS JOIN result USING (result_id)
  GROUP BY place, verification_id
), asked AS MATERIALIZED (
  SELECT place, max(value) AS differs_at
  FROM asked_result CROSS JOIN metric USING (result_id)
  WHERE name = 'invariance_broken_at'
  GROUP BY place
)
SELECT place,
       output,
       iif(min(a.ok), 'ok', 'wrong') AS "output is",
       max(mismatches) AS mismatches,
       max(nonfinite) AS nonfinite,
       max(rel_l2) AS rel_l2,
       max(max_abs) AS max_abs,
       max(worst_row) AS worst_row,
       iif(min(deterministic), 'yes', 'no') AS deterministic,
       iif(max(differs_at) IS NULL, NULL, iif(max(differs_at) = 0, 'yes', 'no')) AS "batch-invariant",
       max(code) AS "code hash",
       max(a.why) AS why
FROM mine CROSS JOIN verified_output a USING (verification_id) LEFT JOIN asked USING (place)
GROUP BY place, output
ORDER BY place, output
