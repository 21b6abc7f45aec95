-- title: energy of a launch: millijoules, mean power, work per joule
-- SPDX-License-Identifier: Apache-2.0
-- task: energy
-- keep: variant; mJ; ± mJ; W; TFLOP/J; GB/J
-- Of a run whose task is energy. mJ is what a launch adds to the flush before it; of one process ± is half the range of
-- its measurements, of several the 95 % interval of their mean. counter mJ is a step of the GPU's counter, per launch of
-- a batch. Where mJ is not above ±, its power and the work per joule are left out.
WITH said AS (
  SELECT case_id, variant, process_id,
         max(CASE WHEN name = 'energy_per_launch' THEN value END) AS mj,
         max(CASE WHEN name = 'energy_uncertainty' THEN value END) AS uncertainty,
         max(CASE WHEN name = 'energy_resolution' THEN value END) AS resolution,
         max(CASE WHEN name = 'mean_power' THEN value END) AS watts,
         max(CASE WHEN name = 'energy_with_flush' THEN value END) AS with_flush,
         max(CASE WHEN name = 'energy_flush' THEN value END) AS flush,
         max(CASE WHEN name = 'energy_launches' THEN value END) AS launches
  FROM metric JOIN result USING (result_id) JOIN process USING (process_id)
  WHERE run_id = :run AND ordinal = -1 AND name IN ('energy_per_launch', 'energy_uncertainty', 'energy_resolution',
        'mean_power', 'energy_with_flush', 'energy_flush', 'energy_launches')
  GROUP BY case_id, variant, process_id
), energy AS (
  SELECT case_id, variant, avg(mj) AS mj, coalesce(reach95(mj), max(uncertainty)) AS reach, max(resolution) AS resolution,
         avg(watts) AS watts, avg(with_flush) AS with_flush, avg(flush) AS flush, sum(launches) AS launches
  FROM said
  GROUP BY case_id, variant
)
SELECT section AS model,
       key AS "case",
       variant,
       round(mj, 4) AS mJ,
       round(reach, 4) AS "± mJ",
       round(CASE WHEN mj > reach THEN watts END, 1) AS W,
       round(CASE WHEN mj > reach THEN flops / mj / 1e9 END, 3) AS "TFLOP/J",
       round(CASE WHEN mj > reach THEN (read_bytes + write_bytes) / mj / 1e6 END, 3) AS "GB/J",
       round(with_flush, 4) AS "mJ with flush",
       round(flush, 4) AS "mJ of flush",
       round(resolution, 4) AS "counter mJ",
       CAST(launches AS INTEGER) AS launches
FROM energy JOIN bench_case USING (case_id) JOIN run_case rc USING (case_id)
WHERE rc.run_id = :run
ORDER BY suite, section, op, CAST(json_extract(params, '$.tokens') AS INTEGER), key, variant
