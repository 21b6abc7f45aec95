-- title: top-k, sort and zeroing in one launch or in three, as AITER PR 3526 has them, beside its own figure
-- SPDX-License-Identifier: Apache-2.0
-- keep: tokens; variant; us; speed-up; 95 % CI
-- people: speed-up; 95 % CI; published us
-- programs: case; speedup; low; high
-- One row per model, tokens, launch and variant. us is the span, first start to last end. Speed-up against chain3, the three
-- launches before the PR; ~ where the 95 % interval includes 1 or does not exist. path: which form ran; one launch holds the
-- batches that fit in a block's shared memory.
--
-- The last column is not measured here. The PR times no kernel of its own: it says what its two launches before cost on an
-- MI355X in serving (gpt-oss-120b, 16 and 32 requests, 1000 tokens in, 100 out), 1.18 ms for top-k and 1.55 ms for sorting
-- and zeroing per step, which is 32.8 and 43.1 us for each of 36 layers. It stands at 32 tokens.
WITH published (section, tokens, variant, us) AS (
  VALUES ('gpt-oss-120b', 32, 'chain3', '75.8 (32.8 + 43.1)')
), measured AS (
  SELECT case_id, section AS model, CAST(json_extract(params, '$.tokens') AS INTEGER) AS tokens,
         json_extract(params, '$.launch') AS launch, variant, exp(avg(ln(span_ns))) AS ns
  FROM level WHERE run_id = :run AND op = 'topk_sort' GROUP BY case_id, variant
)
SELECT model,
       m.tokens,
       launch,
       (SELECT key FROM bench_case c WHERE c.case_id = m.case_id) AS "case",
       m.variant,
       round(ns / 1000, 2) AS us,
       speedup_text(x, reach, 2) AS "speed-up",
       interval_text(x, reach, 2) AS "95 % CI",
       speedup(x, reach) AS speedup,
       exp(x - reach) AS low,
       exp(x + reach) AS high,
       path,
       p.us AS "published us"
FROM measured m
LEFT JOIN gain g ON g.run_id = :run AND g.case_id = m.case_id AND g.variant = m.variant
LEFT JOIN published p ON p.section = model AND p.tokens = m.tokens AND p.variant = m.variant
ORDER BY model, launch, m.tokens, m.variant
