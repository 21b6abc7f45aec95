-- SPDX-License-Identifier: Apache-2.0
-- Views that need functions of sql_functions.cc, beside those of views.sql; reports/README.md lists them.

-- Hides the table: spans as little-endian f32, ns, however they are packed.
CREATE TEMP VIEW IF NOT EXISTS sample AS
SELECT result_id, unpack_spans(spans, packing) AS spans FROM main.sample;

-- One row per case of a run: the least time of a cold launch by its bytes, and by its operations at the rate of what it
-- multiplies: fp8, which int8 has, too, else bf16, as fp16 has it.
CREATE TEMP VIEW IF NOT EXISTS roof AS
SELECT run_id, case_id, memory_ns(read_bytes, write_bytes, cache_bytes, bandwidth) AS memory_ns,
       products_ns(flops, iif(coalesce(json_extract(params, '$.dtype'), iif(op IN ('dense_fc2', 'fused_moe'), 'fp8', '')) IN ('fp8', 'int8'), fp8, bf16)) AS products_ns
FROM run_case JOIN bench_case USING (case_id) JOIN ceilings USING (run_id);

-- One row per case and variant of `paired`. x: the mean of its processes, and reach, half of its 95 % interval.
CREATE TEMP VIEW IF NOT EXISTS gain AS
SELECT run_id, op, case_id, variant, before, exp(avg(ln(before_ns))) AS before_ns, exp(avg(ln(after_ns))) AS after_ns,
       avg(x) AS x, reach95(x) AS reach, max(path) AS path
FROM paired GROUP BY run_id, op, case_id, variant;
