-- title: where warps wait: the ten hottest instructions of every variant, with the reason
-- SPDX-License-Identifier: Apache-2.0
-- task: stalls
-- keep: variant; #; at; instruction; reason; %
-- Of a run of `moegate profile stalls`. samples are those of warps that waited at the instruction, of all
-- processes; % is their share of all samples of the launch, those of warps that issued too. reason is the
-- most frequent one there, and "of these %" its share of the instruction's.
WITH waited AS (
  SELECT run_id, case_id, variant, ordinal, offset, reason, sum(s.samples) AS samples,
         max(instruction) AS instruction, max(line) AS line, max(k.name) AS kernel
  FROM stall s JOIN result r USING (result_id) JOIN process USING (process_id)
  LEFT JOIN kernel k USING (result_id, ordinal)
  WHERE run_id = :run AND reason <> 'selected'
  GROUP BY case_id, variant, ordinal, offset, reason
), launch AS (
  SELECT case_id, variant, sum(value) AS samples
  FROM metric m JOIN result r USING (result_id) JOIN process USING (process_id)
  WHERE run_id = :run AND m.name = 'pc_samples' AND ordinal = -1
  GROUP BY case_id, variant
), place AS (                            -- an instruction; SQLite takes the other columns from the row of max()
  SELECT run_id, case_id, variant, ordinal, offset, reason, max(samples) AS most, sum(samples) AS samples,
         instruction, line, kernel
  FROM waited
  GROUP BY case_id, variant, ordinal, offset
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY case_id, variant ORDER BY samples DESC, ordinal, offset) AS rank
  FROM place
)
SELECT section AS model,
       key AS "case",
       variant,
       rank AS "#",
       kernel,
       printf('%04x', offset) AS "at",
       instruction,
       line,
       reason,
       round(100.0 * most / p.samples, 1) AS "of these %",
       p.samples,
       round(100.0 * p.samples / launch.samples, 1) AS "%"
FROM ranked p JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id)
LEFT JOIN launch USING (case_id, variant)
WHERE rank <= 10
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant, rank
