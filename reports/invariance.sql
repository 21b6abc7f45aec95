-- title: batch invariance: which variants write a token's bits alike in every batch, and what that costs
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; us; Batch-invariant; Differs at; Price
-- people: us; Differs at; Price
-- programs: case; ns; differs_at; elements; price
-- Of a run with --invariance. other: the remaining parameters that vary within this model and run. Differs at: tokens of the smallest batch in which a token's output was not, bit by bit, what it was in a smaller one; then its place in that batch, and the share of its elements that differed. Price, in the row of the fastest variant that is batch-invariant: its time over that of the fastest variant of all.
WITH asked AS (
  SELECT case_id, variant, max(CASE WHEN name = 'invariance_broken_at' THEN value END) AS tokens,
         max(CASE WHEN name = 'invariance_broken_place' THEN value END) AS place,
         max(CASE WHEN name = 'invariance_broken_share' THEN value END) AS share
  FROM metric JOIN result USING (result_id) JOIN process USING (process_id)
  WHERE run_id = :run AND name IN ('invariance_broken_at', 'invariance_broken_place', 'invariance_broken_share')
  GROUP BY case_id, variant
), timed AS (
  SELECT a.*, c.ns, min(c.ns) OVER (PARTITION BY a.case_id) AS best,
         min(CASE WHEN tokens = 0 THEN c.ns END) OVER (PARTITION BY a.case_id) AS invariant
  FROM asked a LEFT JOIN (SELECT case_id, variant, ns FROM cell WHERE run_id = :run) c USING (case_id, variant)
)
SELECT section AS model,
       CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(params) j
        WHERE j.key <> 'tokens'
          AND EXISTS (SELECT 1 FROM varying v WHERE v.run_id = :run AND v.section = rc.section AND v.name = j.key)) AS other,
       key AS "case",
       variant,
       round(ns / 1000, 2) AS us,
       ns,
       iif(tokens = 0, 'yes', 'no') AS "Batch-invariant",
       CAST(nullif(tokens, 0) AS INTEGER) AS "Differs at",
       CAST(nullif(tokens, 0) AS INTEGER) AS differs_at,
       CAST(place AS INTEGER) AS place,
       share AS elements,
       CASE WHEN ns = invariant AND tokens = 0 THEN printf('%.2fx', ns / best) END AS Price,
       CASE WHEN ns = invariant AND tokens = 0 THEN round(ns / best, 4) END AS price
FROM timed JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run AND (:op IS NULL OR op = :op)
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, ns, variant
