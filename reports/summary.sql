-- title: what `moegate run` ends with: time and speed-up of every case and variant, and why a row is not ok
-- SPDX-License-Identifier: Apache-2.0
-- keep: row; variant; us; 95 % CI; Speedup; status; why
-- people: 95 % CI; Speedup
-- programs: from; to; speedup; low; high
-- us and its interval are those of `latency`, before and Speedup those of `speedup`. ~ stands where the interval of the
-- speed-up includes 1 or does not exist. A row with another status than ok says why; of several processes, one does.
WITH results AS (
  SELECT r.*, run_id, CASE WHEN r.status IN ('ok', 'noisy') AND samples > 0 THEN span_ns END AS span
  FROM result r JOIN process USING (process_id)
  WHERE run_id = :run
), grouped AS (
  SELECT case_id, variant, min(result_id) AS result_id, exp(avg(ln(span))) AS level, count(span) AS n,
         reach95(ln(span)) AS reach, max(CASE WHEN span THEN result_id END) AS only,
         avg(CASE WHEN span THEN low_ns END) AS low_ns, avg(CASE WHEN span THEN high_ns END) AS high_ns,
         statuses(status) AS status, max(CASE WHEN status <> 'ok' THEN why END) AS why,
         max(suspect_warm) AS suspect_warm, max(impossible) AS impossible
  FROM results GROUP BY case_id, variant
), bounded AS (
  SELECT grouped.*, CASE WHEN n > 1 THEN level * exp(-reach) ELSE ifnull(span_bound(spans, 0), low_ns) END AS low,
         CASE WHEN n > 1 THEN level * exp(reach) ELSE ifnull(span_bound(spans, 1), high_ns) END AS high
  FROM grouped LEFT JOIN sample ON n = 1 AND sample.result_id = only
), gains AS (
  SELECT case_id, variant, before, x, reach AS gain_reach FROM gain WHERE run_id = :run
)
SELECT bounded.result_id AS "row",
       key AS "case",
       variant,
       round(level / 1000, iif(level < 1e5, 2, 1)) AS us,
       round(low / 1000, iif(level < 1e5, 2, 1)) || '–' || round(high / 1000, iif(level < 1e5, 2, 1)) AS "95 % CI",
       round(low / 1000, 3) AS "from",
       round(high / 1000, 3) AS "to",
       before,
       speedup_text(x, gain_reach, 2) AS Speedup,
       speedup(x, gain_reach) AS speedup,
       exp(x - gain_reach) AS low,
       exp(x + gain_reach) AS high,
       status || iif(suspect_warm, ' suspect_warm', '') || iif(impossible, ' impossible', '') AS status,
       why
FROM bounded JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id) LEFT JOIN gains USING (case_id, variant)
WHERE rc.run_id = :run
ORDER BY suite, section, op, json_extract(params, '$.launch'), json_extract(params, '$.cache'), json_extract(params, '$.routing'),
         CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant
