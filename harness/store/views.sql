-- SPDX-License-Identifier: Apache-2.0
-- Views over a store that plain SQLite can run; reports/README.md lists them. `moegate list views` prints them.

-- One row per process, case and variant that has a latency; judged: what the gate would judge.
CREATE TEMP VIEW IF NOT EXISTS timed AS
SELECT run_id, result_id, case_id, variant, round, path, span_ns,
       CASE judged WHEN 'span' THEN span_ns WHEN 'none' THEN NULL ELSE ratio END AS judged
FROM result r JOIN process USING (process_id)
WHERE r.status IN ('ok', 'noisy') AND samples > 0;

-- The same with what is said of its case and run.
CREATE TEMP VIEW IF NOT EXISTS level AS
SELECT run_id, result_id, case_id, suite, section, op, params, facts, variant, round, path, backend,
       span_ns, judged
FROM timed JOIN run USING (run_id) JOIN device USING (device_id)
JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id);

-- One row per case and variant: the level of its processes.
CREATE TEMP VIEW IF NOT EXISTS cell AS
SELECT run_id, case_id, suite, section, op, params, facts, variant, ns
FROM (SELECT run_id, case_id, variant, exp(avg(ln(span_ns))) AS ns FROM timed
      GROUP BY run_id, case_id, variant)
JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id);

-- One row per run: what `moegate doctor --db` measured on its device.
CREATE TEMP VIEW IF NOT EXISTS ceilings AS
SELECT run_id, cache_bytes, max(value) FILTER (WHERE c.name = 'read_bytes_per_s') AS bandwidth,
       max(value) FILTER (WHERE c.name = 'fp8_flops') AS fp8,
       max(value) FILTER (WHERE c.name = 'bf16_flops') AS bf16
FROM run JOIN device USING (device_id) LEFT JOIN ceiling c USING (device_id) GROUP BY run_id;

-- One row per parameter that has several values within a section of a run.
CREATE TEMP VIEW IF NOT EXISTS varying AS
SELECT run_id, section, j.key AS name FROM run_case JOIN bench_case USING (case_id), json_each(params) j
GROUP BY run_id, section, j.key HAVING count(DISTINCT j.value) > 1;

-- One row per process, case and variant that has a before: of the lines its operator states whose pattern fits the
-- variant and whose before was measured in the same case, that of the lowest rank; a before has none. x: the log ratio
-- before / after. One SELECT, so that a report's run_id = :run reaches the tables.
CREATE TEMP VIEW IF NOT EXISTS paired AS
SELECT a.run_id, op, a.case_id, a.variant, b.variant AS before, a.round, b.span_ns AS before_ns, a.span_ns AS after_ns,
       ln(b.judged / a.judged) AS x, a.path
FROM timed a JOIN bench_case USING (case_id)
CROSS JOIN timed b  -- CROSS: in this order, not quadratic in cases
ON b.run_id = a.run_id AND b.case_id = a.case_id AND b.round = a.round
WHERE a.judged > 0 AND b.judged > 0
  AND NOT EXISTS (SELECT 1 FROM before own WHERE own.run_id = a.run_id AND own.op = bench_case.op AND own.variant = a.variant)
  AND b.variant = (SELECT s.variant FROM before s
                   WHERE s.run_id = a.run_id AND s.op = bench_case.op AND a.variant GLOB s.after
                     AND EXISTS (SELECT 1 FROM timed m WHERE m.run_id = a.run_id AND m.case_id = a.case_id
                                 AND m.variant = s.variant AND m.judged > 0)
                   ORDER BY rank LIMIT 1);

-- What a run's own gate decided, of an A/B's head its A/B: what else a run was compared with is no verdict on it.
CREATE TEMP VIEW IF NOT EXISTS own_verdict AS
SELECT * FROM verdict
WHERE iif(run_id IN (SELECT run_id FROM tag WHERE name = 'ab'), against GLOB 'run [0-9]* at *',
          against NOT GLOB 'run [0-9]*' AND against <> 'mean');
