-- title: output against truth: every metric of every output, worst over the processes
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; output; output is; mismatches; rel_l2; max_abs; why
-- An empty error is not finite; an empty misrounded, excess or factor is not known, or of integers. misrounded, excess, factors: values/rounding.h. deterministic: the output was bitwise equal over all timed launches. batch-invariant: a token's output was the same in every batch, where that was asked (--invariance; report invariance).
-- Processes of a row find the same as a rule: what they found is read once.
WITH found AS (
  SELECT case_id, variant, verification_id, min(deterministic) AS deterministic
  FROM process CROSS JOIN result USING (process_id)
  WHERE run_id = :run
  GROUP BY case_id, variant, verification_id
), worst AS (
  SELECT case_id, variant, output, min(ok) AS ok, max(elements) AS elements, max(mismatches) AS mismatches,
         max(nonfinite) AS nonfinite, iif(count(rel_l2) = count(*), max(rel_l2), NULL) AS rel_l2,
         min(cosine) AS cosine, max(abs(scale - 1)) AS scale, max(max_abs) AS max_abs, max(max_rel) AS max_rel,
         max(worst_row) AS worst_row, max(graded) AS graded, max(misrounded) AS misrounded, max(excess) AS excess,
         max(row_scale) AS row_scale, max(column_scale) AS column_scale, min(deterministic) AS deterministic, max(why) AS why
  FROM found CROSS JOIN verified_output USING (verification_id)
  GROUP BY case_id, variant, output
), asked AS (
  SELECT case_id, variant, max(value) AS differs_at
  FROM metric JOIN result USING (result_id) JOIN process USING (process_id)
  WHERE run_id = :run AND name = 'invariance_broken_at'
  GROUP BY case_id, variant
)
SELECT section AS model,
       key AS "case",
       variant,
       output,
       iif(ok, 'ok', 'wrong') AS "output is",
       elements AS compared,
       mismatches,
       nonfinite,
       rel_l2,
       1 - cosine AS "1 - cosine",
       scale AS "scale error",
       max_abs,
       max_rel,
       worst_row,
       iif(graded, misrounded, NULL) AS misrounded,
       iif(graded, excess, NULL) AS excess,
       iif(graded, row_scale, NULL) AS "factors of rows",
       iif(graded, column_scale, NULL) AS "factors of columns",
       iif(deterministic, 'yes', 'no') AS deterministic,
       iif(differs_at IS NULL, NULL, iif(differs_at = 0, 'yes', 'no')) AS "batch-invariant",
       why
FROM worst LEFT JOIN asked USING (case_id, variant) JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run AND (:op IS NULL OR op = :op)
ORDER BY ok, suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant, output
