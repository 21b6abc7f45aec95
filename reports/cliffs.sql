-- title: cliffs: token counts that take longer than the next larger one
-- SPDX-License-Identifier: Apache-2.0
-- keep: variant; tokens; next; Longer
-- people: Longer; 95 % CI
-- programs: case; longer; low; high; p
-- Of a run of `moegate tune --check`: where the configuration chosen for fewer tokens takes longer, by more than the
-- limit, than the one chosen for the next larger count that was measured. Padding would win there.
SELECT v.suite,
       json_extract(params, '$.routing') AS routing,
       v.key AS "case",
       v.variant,
       CAST(v.head AS INTEGER) AS tokens,
       CAST(v.base AS INTEGER) AS next,
       nullif(v.waiver, '') AS waiver,
       printf('%.1f %%', 100 * v.effect) AS Longer,
       printf('%.1f–%.1f %%', 100 * v.low, 100 * v.high) AS "95 % CI",
       v.effect AS longer,
       v.low,
       v.high,
       v.p_adjusted AS p
FROM verdict v LEFT JOIN bench_case c ON c.key = v.key
WHERE v.run_id = :run AND v.against = 'cliff' AND (:op IS NULL OR c.op = :op)
ORDER BY v.suite, v.variant, routing, tokens
