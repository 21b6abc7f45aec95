-- title: Planted slow-downs that stored numbers alone caught on GPUs other than the baseline's
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH caught AS (
SELECT 'a tenth of the rows has other code' AS panel, "GPU", "+2 %", "+5 %" FROM page_2
UNION ALL SELECT 'all rows have other code', "GPU", "+2 %", "+5 %" FROM page_3
), side AS (
SELECT panel, "GPU", '+2 %' AS series, "+2 %" AS share FROM caught
UNION ALL SELECT panel, "GPU", '+5 %', "+5 %" FROM caught
)
SELECT panel,
       "GPU" AS label,
       series,
       round(100.0 * CAST(share AS INTEGER) / substr(share, instr(share, 'of ') + 3), 1) AS value,
       '% of the slowed rows; more is better' AS axis
FROM side
