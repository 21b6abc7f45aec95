-- title: Worker processes: clocks, throttling, results
-- SPDX-License-Identifier: Apache-2.0
-- SM clock: the least and the mean of the rows' medians; empty on a host.
SELECT round + 1 AS round,
       p.started,
       p.throttle,
       round(min(CASE WHEN sm_mhz > 0 THEN sm_mhz END)) AS "SM MHz, least",
       round(avg(CASE WHEN sm_mhz > 0 THEN sm_mhz END)) AS "SM MHz, mean",
       count(result_id) AS results,
       sum(r.status = 'noisy') AS noisy,
       sum(invalid) AS "invalid samples"
FROM process p LEFT JOIN result r USING (process_id)
WHERE run_id = :run
GROUP BY process_id
ORDER BY process_id
