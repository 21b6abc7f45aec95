-- title: the runs of a store: when, where, which commit, and how they ended
-- SPDX-License-Identifier: Apache-2.0
-- keep: run; started; status; commit; measured; failed
-- From what processes count, so that no run's results are read: a year has 10^8.
WITH counted AS (
  SELECT run_id,
         sum(results) AS results,
         sum(wall_s) AS seconds,
         sum(bytes) AS bytes,
         sum((SELECT count(*) FROM result r WHERE r.process_id = process.process_id AND status NOT IN ('ok', 'noisy'))) AS bad,
         sum((SELECT count(*) FROM result r WHERE r.process_id = process.process_id AND status NOT IN ('ok', 'noisy')
              AND status = 'unsupported')) AS unsupported
  FROM process GROUP BY run_id
)
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
       -- Of the kernels' repository, where they are from elsewhere.
       ifnull((SELECT substr(value, 1, 12) || iif(value LIKE '%-dirty', ' DIRTY', '') FROM tag
               WHERE tag.run_id = run.run_id AND name = 'commit'),
              substr(git_sha, 1, 12) || iif(dirty, ' DIRTY', '')) AS "commit",
       (SELECT count(*) FROM run_case WHERE run_case.run_id = run.run_id) AS cases,
       ifnull(results, 0) AS results,
       results - bad AS measured,
       unsupported,
       bad - unsupported AS failed,
       round(seconds, 1) AS seconds,
       round(nullif(bytes, 0) / 1e6, 1) AS MB
FROM run JOIN device d USING (device_id) LEFT JOIN counted USING (run_id)
ORDER BY run_id
