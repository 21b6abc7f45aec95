-- title: latency of every case and variant: microseconds with 95 % interval, bandwidth, status
-- SPDX-License-Identifier: Apache-2.0
-- keep: row; variant; us; from; to; GB/s; status; why
-- us is the geometric mean of the processes' trimmed means, its interval from their spread (Student t on
-- logs); with one process, the interval of that process's trimmed mean, or of its median where samples are gone.
-- row is what `moegate run --like` takes.
WITH results AS (
  SELECT r.*, run_id, round,
         (SELECT count(*) FROM launch k WHERE k.result_id = r.result_id) AS launches,
         CASE WHEN r.status IN ('ok', 'noisy') AND samples > 0 THEN span_ns END AS span
  FROM result r JOIN process USING (process_id)
  WHERE run_id = :run
), grouped AS (
  SELECT case_id, variant, min(result_id) AS result_id, count(*) AS processes, count(span) AS n,
         exp(avg(ln(span))) AS level, reach95(ln(span)) AS reach,
         max(CASE WHEN span THEN result_id END) AS only,
         avg(CASE WHEN span THEN low_ns END) AS low_ns, avg(CASE WHEN span THEN high_ns END) AS high_ns,
         avg(CASE WHEN span THEN busy_ns END) AS busy, max(launches) AS launches,
         sum(samples) AS samples, statuses(status) AS status, max(why) AS why, max(path) AS path,
         max(suspect_warm) AS suspect_warm, max(impossible) AS impossible,
         exp(avg(ln(CASE WHEN span AND ratio > 0 THEN ratio END))) AS ratio
  FROM results
  GROUP BY case_id, variant
)
SELECT section AS model,
       key AS "case",
       grouped.result_id AS "row",
       variant,
       round(level / 1000, 3) AS us,
       round(CASE WHEN n > 1 THEN level * exp(-reach) ELSE ifnull(span_bound(spans, 0), low_ns) END / 1000, 3) AS "from",
       round(CASE WHEN n > 1 THEN level * exp(reach) ELSE ifnull(span_bound(spans, 1), high_ns) END / 1000, 3) AS "to",
       round(busy / 1000, 3) AS "busy us",
       CASE WHEN launches > 0 THEN launches END AS launches,
       CASE WHEN n > 0 THEN samples END AS samples,
       n AS processes,
       round((read_bytes + write_bytes) / level, 1) AS "GB/s",
       round(ratio, 4) AS "to yardstick",
       status || iif(suspect_warm, ' suspect_warm', '') || iif(impossible, ' impossible', '') AS status,
       path,
       why
FROM grouped JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
     LEFT JOIN sample ON n = 1 AND sample.result_id = only
WHERE rc.run_id = :run
ORDER BY suite, section, op, json_extract(params, '$.launch'), json_extract(params, '$.cache'), json_extract(params, '$.routing'),
         CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant
