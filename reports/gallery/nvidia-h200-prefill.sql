-- title: The whole layer at prefill on an H200: time by chain; less is better
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT model AS panel,
       tokens || ' tokens' AS label,
       replace(chain, ' *', '') AS series,
       CAST(us AS REAL) AS value,
       'us; less is better' AS axis
FROM page_1
