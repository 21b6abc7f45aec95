-- title: int4 MoE layers as ONNX Runtime PR 29167 tabulates them: FC1, FC2, the whole, cold and warm, beside its own figures
-- SPDX-License-Identifier: Apache-2.0
-- keep: route; FC1 us, cold; FC1 speed-up, cold; FC2 us, cold; FC2 speed-up, cold
-- people: launches, cold; FC1 speed-up, cold; launches, warm; FC1 speed-up, warm; FC2 speed-up, cold; FC2 speed-up, warm; layer speed-up, warm
-- programs: FC1 case, cold; FC1 speedup, cold; FC1 low, cold; FC1 high, cold; FC1 case, warm; FC1 speedup, warm; FC1 low, warm; FC1 high, warm
-- programs: FC2 case, cold; FC2 speedup, cold; FC2 low, cold; FC2 high, cold; FC2 case, warm; FC2 speedup, warm; FC2 low, warm; FC2 high, warm
-- programs: layer case, warm; layer speedup, warm; layer low, warm; layer high, warm
-- One row per layer and route: a variant of FC1 with the FC2 that goes with it, which for a split FC1 is that of its
-- before (FC2 is never split), and with the layer that runs both: stream_imma's is stream, single's on a host chain. us is
-- the span, first start to last end; launches gives the parts of a split one, partial sums + reduction, without the gap
-- between them. Speed-up against the single pass with the same accumulator, with 95 % interval; ~ where that includes 1 or
-- does not exist. other: what varies beside the cache.
--
-- The published columns are not measured here: microsoft/onnxruntime PR 29167, H200, Nsight Systems, one token repeated
-- (hot L2). Two figures are those of two of its comparisons. Its operator is the whole layer, as in the columns beside it:
-- routing, sorting rows, FC1, FC2, adding rows up. variables: those of ONNX Runtime that choose the route, of ORT_MOE_GEMV_*.
WITH published (hidden, inter, block, variant, fc1, fc2, operator) AS (
  VALUES ('2880', '2880', '0', 'single_fp16_acc', '13.93', '10.14', 63.0),
         ('2880', '2880', '0', 'split_k2_fp16_acc', NULL, NULL, 63.95),
         ('2880', '2880', '0', 'single_fp32_acc', '21.42, 21.57', '12.15, 12.24', 71.31),
         ('2880', '2880', '0', 'split_k2_fp32_acc', '17.59 + 2.39', '12.15', 71.73),
         ('2880', '2880', '64', 'single_fp16_acc', '14.17', '10.97', NULL),
         ('2048', '512', '64', 'single_fp16_acc', '5.11', '3.24', NULL),
         ('2816', '704', '64', 'single_fp16_acc', '7.52', '4.59', NULL)
), variable (variant, names) AS (
  VALUES ('single_fp32_acc', 'FP32_ACCUM=1'), ('split_k2_fp16_acc', 'SPLITK2_SWIGLU=1'), ('split_k2_fp32_acc', 'both')
), measured AS (
  SELECT result_id, case_id, CASE op WHEN 'qmoe_fc1_swiglu' THEN 'FC1' WHEN 'qmoe_fc2' THEN 'FC2' ELSE 'layer' END AS part,
         CASE WHEN op <> 'qmoe_layer' THEN variant WHEN variant = 'stream' THEN 'stream_imma' WHEN variant = 'chain' THEN 'single'
              ELSE variant END AS variant,
         round, span_ns, json_extract(params, '$.cache') AS cache, judged,
         replace(substr(section, 1, instr(section || '-fc', '-fc') - 1), '-layer', '') AS model,
         json_remove(params, '$.alpha', '$.beta', '$.limit', '$.cache') AS layer,  -- the same for all parts
         CASE WHEN backend = 'host' THEN 'single'
              WHEN variant GLOB '*_fp32_acc' OR json_extract(params, '$.dtype') = 'bf16' THEN 'single_fp32_acc'
              ELSE 'single_fp16_acc' END AS before
  FROM level WHERE run_id = :run AND op GLOB 'qmoe_*'
), parts AS (
  SELECT case_id, variant, group_concat(us, ' + ') AS launches
  FROM (SELECT case_id, variant, ordinal, printf('%.2f', avg(ns) / 1000) AS us
        FROM measured JOIN kernel USING (result_id)
        GROUP BY case_id, variant, ordinal ORDER BY case_id, variant, ordinal)
  GROUP BY case_id, variant HAVING count(*) > 1
), change AS (
  SELECT a.case_id, a.variant, avg(ln(b.judged / a.judged)) AS x,
         reach95(ln(b.judged / a.judged)) AS reach
  FROM measured a JOIN measured b ON b.case_id = a.case_id AND b.round = a.round AND b.variant = a.before
  WHERE a.variant <> a.before AND a.judged > 0 AND b.judged > 0
  GROUP BY a.case_id, a.variant
), layer_cell AS (
  SELECT model, layer, part, cache, m.variant, before, launches,
         round(exp(avg(ln(span_ns))) / 1000, 2) AS us,
         CASE WHEN m.variant <> before
              THEN coalesce(speedup_with_interval(x, reach, 2), '~') END AS text,
         speedup(x, reach) AS speedup, exp(x - reach) AS low, exp(x + reach) AS high,
         (SELECT key FROM bench_case c WHERE c.case_id = m.case_id) AS key
  FROM measured m LEFT JOIN parts USING (case_id, variant) LEFT JOIN change USING (case_id, variant)
  GROUP BY case_id, m.variant
), route AS (
  SELECT DISTINCT model, layer, variant, before, iif(variant GLOB 'split_k*', before, variant) AS fc2_variant
  FROM layer_cell
), varies AS (  -- within a model, which here is two sections
  SELECT model, j.key AS name FROM route, json_each(layer) j
  GROUP BY model, j.key HAVING count(DISTINCT j.value) > 1
)
SELECT model,
       (SELECT group_concat(j.key || '=' || j.value, ' ') FROM json_each(layer) j
        WHERE EXISTS (SELECT 1 FROM varies v WHERE v.model = route.model AND v.name = j.key)) AS other,
       route.variant AS route,
       (SELECT names FROM variable v WHERE v.variant = route.variant) AS variables,
       max(us) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 us, cold",
       max(launches) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "launches, cold",
       max(text) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 speed-up, cold",
       max(us) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 us, warm",
       max(launches) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "launches, warm",
       max(text) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 speed-up, warm",
       max(us) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 us, cold",
       max(text) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 speed-up, cold",
       max(us) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 us, warm",
       max(text) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 speed-up, warm",
       max(key) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 case, cold",
       max(speedup) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 speedup, cold",
       max(low) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 low, cold",
       max(high) FILTER (WHERE part = 'FC1' AND cache = 'cold') AS "FC1 high, cold",
       max(key) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 case, warm",
       max(speedup) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 speedup, warm",
       max(low) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 low, warm",
       max(high) FILTER (WHERE part = 'FC1' AND cache = 'warm') AS "FC1 high, warm",
       max(key) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 case, cold",
       max(speedup) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 speedup, cold",
       max(low) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 low, cold",
       max(high) FILTER (WHERE part = 'FC2' AND cache = 'cold') AS "FC2 high, cold",
       max(key) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 case, warm",
       max(speedup) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 speedup, warm",
       max(low) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 low, warm",
       max(high) FILTER (WHERE part = 'FC2' AND cache = 'warm') AS "FC2 high, warm",
       max(key) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer case, warm",
       max(speedup) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer speedup, warm",
       max(low) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer low, warm",
       max(high) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer high, warm",
       p.fc1 AS "published FC1 us, hot",
       p.fc2 AS "published FC2 us, hot",
       max(us) FILTER (WHERE part = 'layer' AND cache = 'cold') AS "layer us, cold",
       max(us) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer us, warm",
       max(text) FILTER (WHERE part = 'layer' AND cache = 'warm') AS "layer speed-up, warm",
       p.operator AS "published operator us, hot"
FROM route
JOIN layer_cell USING (model, layer)
LEFT JOIN published p ON p.variant = route.variant AND hidden = json_extract(layer, '$.hidden') AND inter = json_extract(layer, '$.inter')
     AND block = json_extract(layer, '$."scale-block"') AND json_extract(layer, '$.tokens') = '1' AND json_extract(layer, '$.dtype') = 'fp16'
WHERE layer_cell.variant = iif(part = 'FC2', fc2_variant, route.variant)
GROUP BY model, layer, route.variant
ORDER BY model, CAST(json_extract(layer, '$.tokens') AS INTEGER), layer, route.before, route.variant <> route.before, route.variant
