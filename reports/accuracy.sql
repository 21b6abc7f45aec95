-- title: output against truth: every metric of every output, worst over the processes
-- SPDX-License-Identifier: Apache-2.0
-- An empty error is not finite. deterministic: the output was bitwise equal over all timed launches.
SELECT section AS model,
       key AS "case",
       variant,
       output,
       iif(min(a.ok), 'ok', 'wrong') AS "output is",
       max(elements) AS compared,
       max(mismatches) AS mismatches,
       max(nonfinite) AS nonfinite,
       iif(count(rel_l2) = count(*), max(rel_l2), NULL) AS rel_l2,
       1 - min(cosine) AS "1 - cosine",
       max(abs(scale - 1)) AS "scale error",
       max(max_abs) AS max_abs,
       max(max_rel) AS max_rel,
       max(worst_row) AS worst_row,
       iif(min(deterministic), 'yes', 'no') AS deterministic,
       max(a.why) AS why
FROM process p CROSS JOIN result r USING (process_id) CROSS JOIN verified_output a USING (verification_id)
JOIN bench_case USING (case_id) JOIN run_case rc USING (run_id, case_id)
WHERE run_id = :run AND (:op IS NULL OR op = :op)
GROUP BY case_id, variant, output
ORDER BY min(a.ok), suite, section, op, CAST(params ->> 'tokens' AS INTEGER), key, variant, output
