-- title: the runs of a store: when, where, which commit, and how they ended
-- SPDX-License-Identifier: Apache-2.0
SELECT run_id AS run,
       label,
       run.started,
       run.status,
       d.name AS device,
       class,
       driver,
       timer,
       flush,
       rounds,
       substr(git_sha, 1, 12) || iif(dirty, ' DIRTY', '') AS "commit",
       count(DISTINCT case_id) AS cases,
       count(result_id) AS results,
       sum(r.status IN ('ok', 'noisy')) AS measured,
       sum(r.status = 'unsupported') AS unsupported,
       sum(r.status IN ('wrong', 'crashed', 'timeout', 'bad_timer')) AS failed,
       round(sum(wall_s), 1) AS seconds
FROM run JOIN device d USING (device_id)
LEFT JOIN process USING (run_id)
LEFT JOIN (SELECT result_id, process_id, case_id, status, wall_s FROM result) r USING (process_id)
GROUP BY run_id
ORDER BY run_id
