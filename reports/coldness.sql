-- title: what cold launches read from DRAM against what they must, and why where the two differ by over 3 %
-- SPDX-License-Identifier: Apache-2.0
-- task: counters
-- keep: variant; must read MB; DRAM read MB; ratio; verdict
-- Of runs of `moegate profile`, rows with cache = cold. must read MB: the operator's compulsory bytes. A difference of
-- up to 64 KiB is code, arguments, page tables and what the counting itself does.
WITH counted AS (
  SELECT section, suite, op, key, params, variant, read_bytes, write_bytes, cache_bytes,
         max(iif(m.name = 'dram__bytes_read.sum', value, NULL)) AS dram_read,
         32 * max(iif(m.name = 'lts__t_sectors_srcunit_tex_op_read.sum', value, NULL)) AS l2_read
  FROM metric m JOIN result r USING (result_id) JOIN process p USING (process_id)
  JOIN run USING (run_id) JOIN device USING (device_id)
  JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id)
  WHERE run_id = :run AND ordinal < 0 AND json_extract(params, '$.cache') = 'cold'
  GROUP BY result_id
)
SELECT section AS model,
       key AS "case",
       variant,
       round(read_bytes / 1e6, 3) AS "must read MB",
       round(dram_read / 1e6, 3) AS "DRAM read MB",
       round(dram_read / nullif(read_bytes, 0), 3) AS ratio,
       round(l2_read / 1e6, 3) AS "L2 read MB",
       CASE WHEN abs(dram_read - read_bytes) <= 0.03 * read_bytes THEN 'cold'
            WHEN abs(dram_read - read_bytes) <= 65536 THEN 'cold, but for less than 64 KiB'
            WHEN dram_read < read_bytes AND l2_read < 0.97 * read_bytes
              THEN printf('reads %.0f %% of what the operator states: it leaves inputs out', 100 * l2_read / read_bytes)
            WHEN dram_read < read_bytes
              THEN printf('SUSPECT WARM: %.1f %% came from the cache', 100 - 100 * dram_read / read_bytes)
            WHEN l2_read < dram_read THEN 'reads more from DRAM than from L2: lines of 64 bytes of which it needs 32'
            WHEN read_bytes + write_bytes > cache_bytes
              THEN printf('reads %.1f times, and the inputs do not fit in L2', l2_read / read_bytes)
            ELSE printf('also reads %.3f MB that it wrote, or that no cost states', (dram_read - read_bytes) / 1e6)
       END AS verdict
FROM counted
WHERE dram_read IS NOT NULL
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant
