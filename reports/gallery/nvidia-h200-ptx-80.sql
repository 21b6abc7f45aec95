-- title: PTX of compute_80 over machine code, by variant
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT operator AS panel,
       replace(variant, '`', '') AS label,
       'PTX' AS series,
       "PTX / machine code" AS value,
       'time of PTX of compute_80 over that of machine code for sm_90a' AS axis
FROM page_1
