-- title: What moegate doctor times on an H200: flushes, and a read of 16 MiB
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
SELECT '' AS panel,
       replace(probe, 'read 16 MiB, ', 'read ') AS label,
       'us' AS series,
       value,
       'us' AS axis
FROM page_1
WHERE unit = 'us'
