-- title: hardware counters: bytes, hit rates, pipes, what warps wait for, what bounds the launch
-- SPDX-License-Identifier: Apache-2.0
-- task: counters
-- keep: variant; of; busy us; DRAM %; L2 %; tensor %; issue %; bound by
-- people: first stall
-- programs: first stall reason; first stall %
-- Of runs of `moegate profile`. One row per launch, and one per kernel where each was counted (--per-kernel).
-- busy us is the time in which the busiest SM had a warp: the kernels without the gaps between them, slower than
-- where nobody counts. DRAM % and L2 % are bytes over that time and the chip's peak. A stall is a share of the warps'
-- time; the two that are no waiting (selected, not_selected) are left out. `bound by` is the highest of the rates
-- where one is 60 % or more, else latency.
WITH value AS (
  SELECT result_id, ordinal,
         max(iif(name = 'dram__bytes_read.sum', value, NULL)) AS dram_read,
         max(iif(name = 'dram__bytes_write.sum', value, NULL)) AS dram_write,
         max(iif(name = 'dram__bytes.sum.peak_sustained_elapsed.per_second', value, NULL)) AS dram_peak,
         32 * max(iif(name = 'lts__t_sectors_srcunit_tex_op_read.sum', value, NULL)) AS l2_read,
         max(iif(name = 'lts__t_sectors.sum', value, NULL)) AS l2_sectors,
         max(iif(name = 'lts__t_sectors.sum.peak_sustained', value, NULL))
           * max(iif(name = 'lts__cycles_elapsed.avg.per_second', value, NULL)) AS l2_peak,
         max(iif(name = 'lts__t_sector_hit_rate.pct', value, NULL)) AS l2_hit,
         max(iif(name = 'l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active', value, NULL)) AS l1,
         max(iif(name = 'sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active', value, NULL)) AS tensor,
         max(iif(name = 'smsp__issue_active.avg.pct_of_peak_sustained_active', value, NULL)) AS issue,
         max(iif(name = 'sm__warps_active.avg.pct_of_peak_sustained_active', value, NULL)) AS warps,
         max(iif(name = 'sm__cycles_active.max', value, NULL))
           / max(iif(name = 'sm__cycles_elapsed.avg.per_second', value, NULL)) AS busy_s,
         max(iif(name = 'smsp__warps_active.sum', value, NULL)) AS warp_cycles,
         max(iif(name = 'l1tex__data_bank_conflicts_pipe_lsu.sum', value, NULL)) AS conflicts,
         sum(iif(name IN ('smsp__inst_executed_op_local_ld.sum', 'smsp__inst_executed_op_local_st.sum'), value, NULL)) AS local_instructions
  FROM metric JOIN result USING (result_id) JOIN process USING (process_id)
  WHERE run_id = :run AND name <> 'counter_passes'
  GROUP BY result_id, ordinal
), rate AS (
  SELECT *, 100 * (dram_read + dram_write) / busy_s / dram_peak AS dram, 100 * l2_sectors / busy_s / l2_peak AS l2
  FROM value WHERE coalesce(dram_read, l2_read, warp_cycles, issue) IS NOT NULL
), stalled AS (
  SELECT result_id, ordinal, replace(substr(name, 27), '.sum', '') AS reason, value,
         row_number() OVER (PARTITION BY result_id, ordinal ORDER BY value DESC) AS place
  FROM metric JOIN rate USING (result_id, ordinal)
  WHERE name GLOB 'smsp__warps_issue_stalled_*.sum'
    AND name NOT IN ('smsp__warps_issue_stalled_selected.sum', 'smsp__warps_issue_stalled_not_selected.sum')
)
SELECT section AS model,
       key AS "case",
       variant,
       iif(c.ordinal < 0, 'launch', coalesce(k.name, 'kernel ' || (c.ordinal + 1))) AS "of",
       round(1e6 * busy_s, 3) AS "busy us",
       round(dram_read / 1e6, 3) AS "DRAM read MB",
       round(dram_write / 1e6, 3) AS "DRAM write MB",
       iif(c.ordinal < 0, round(dram_read / nullif(read_bytes, 0), 3), NULL) AS "x compulsory",
       round(l2_read / 1e6, 3) AS "L2 read MB",
       round(l2_hit, 1) AS "L2 hit %",
       round(dram, 1) AS "DRAM %",
       round(l2, 1) AS "L2 %",
       round(l1, 1) AS "L1 %",
       round(tensor, 1) AS "tensor %",
       round(issue, 1) AS "issue %",
       round(warps, 1) AS "warps %",
       CAST(local_instructions AS INTEGER) AS "local ld+st",
       CAST(conflicts AS INTEGER) AS "bank conflicts",
       (SELECT printf('%s %.0f %%', reason, 100 * value / warp_cycles) FROM stalled s
        WHERE s.result_id = c.result_id AND s.ordinal = c.ordinal AND place = 1) AS "first stall",
       (SELECT reason FROM stalled s WHERE s.result_id = c.result_id AND s.ordinal = c.ordinal AND place = 1)
         AS "first stall reason",
       (SELECT round(100 * value / warp_cycles, 1) FROM stalled s
        WHERE s.result_id = c.result_id AND s.ordinal = c.ordinal AND place = 1) AS "first stall %",
       CASE WHEN max(dram, l2, l1, tensor, issue) < 60 THEN 'latency'
            WHEN dram = max(dram, l2, l1, tensor, issue) THEN 'DRAM'
            WHEN tensor = max(dram, l2, l1, tensor, issue) THEN 'tensor pipe'
            WHEN l2 = max(dram, l2, l1, tensor, issue) THEN 'L2'
            WHEN l1 = max(dram, l2, l1, tensor, issue) THEN 'L1'
            WHEN issue = max(dram, l2, l1, tensor, issue) THEN 'issue' END AS "bound by"
FROM rate c JOIN result r USING (result_id) JOIN process USING (process_id)
JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id)
LEFT JOIN kernel k ON k.result_id = c.result_id AND k.ordinal = c.ordinal
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant, c.ordinal
