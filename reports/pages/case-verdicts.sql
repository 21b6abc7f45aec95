-- title: Verdicts of the ten newest judged nights
-- SPDX-License-Identifier: Apache-2.0
-- Nights on this class of devices, up to the row's newest run; an A/B is none, and a comparison with a run no verdict
-- of it. A verdict is found by its whole key: of a row's verdicts of all nights, the newest would be the last.
WITH night AS MATERIALIZED (
  SELECT newest, run_id, row_number() OVER (PARTITION BY newest ORDER BY run_id DESC) AS age
  FROM (SELECT DISTINCT run_id AS newest FROM asked)
  CROSS JOIN run r ON r.run_id <= newest CROSS JOIN device d USING (device_id)
  WHERE d.class = (SELECT class FROM run JOIN device USING (device_id) WHERE run_id = newest)
    AND NOT EXISTS (SELECT 1 FROM tag WHERE tag.run_id = r.run_id AND name = 'ab')
    AND EXISTS (SELECT 1 FROM verdict v WHERE v.run_id = r.run_id AND against NOT GLOB 'run [0-9]*')
), judged AS MATERIALIZED (
  SELECT DISTINCT newest, run_id, against, suite FROM night CROSS JOIN verdict USING (run_id) WHERE age <= 10
)
SELECT place,
       v.run_id AS run,
       outcome,
       round(base, 4) AS before,
       round(head, 4) AS now,
       round(100 * effect, 2) AS "change (%)",
       round(100 * low, 2) AS "from (%)",
       round(100 * high, 2) AS "to (%)",
       p_adjusted AS "adjusted p",
       stage,
       iif(cause <> '', cause || '; ' || why, why) AS why,
       v.against
FROM asked a CROSS JOIN judged j ON j.newest = a.run_id AND j.against NOT GLOB 'run [0-9]*'
CROSS JOIN verdict v ON v.run_id = j.run_id AND v.against = j.against AND v.suite = j.suite
                    AND v.key = a.key AND v.variant = a.variant
ORDER BY place, v.run_id DESC
