-- title: Sorted rows and TMA in the down projection: speed-up over gather
-- SPDX-License-Identifier: Apache-2.0
-- chart: points.vg.json
SELECT model || ', ' || type AS panel,
       tokens || ' tokens' AS label,
       down AS series,
       CAST("speed-up" AS REAL) AS value,
       coalesce(nullif(low, ''), CAST("speed-up" AS REAL)) AS "from",
       coalesce(nullif(high, ''), CAST("speed-up" AS REAL)) AS "to",
       'speed-up over gather; more is better' AS axis
FROM page_1
WHERE "speed-up" GLOB '[0-9]*'
