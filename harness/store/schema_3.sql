-- SPDX-License-Identifier: Apache-2.0

-- Whatever asks about one run begins here. ANALYZE, after a migration and at the end of every run, lets the
-- planner see that few results belong to one run.
CREATE INDEX process_run ON process (run_id);

-- Names of a run that it keeps when stores are merged: its own, and that of what it is one run of, which is its
-- own where it stands alone.
ALTER TABLE run ADD COLUMN uuid TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN campaign TEXT NOT NULL DEFAULT '';
UPDATE run SET uuid = lower(hex(randomblob(16)));
UPDATE run SET campaign = uuid;
CREATE UNIQUE INDEX run_uuid ON run (uuid);

ALTER TABLE result ADD COLUMN slow INTEGER NOT NULL DEFAULT 0;  -- of the invalid samples, those with a slow clock alone
-- Which number is judged: span_ns, ratio, or none of a yardstick's own. Rows of older versions say what those
-- versions judged.
ALTER TABLE result ADD COLUMN judged TEXT NOT NULL DEFAULT 'none' CHECK (judged IN ('none', 'span', 'ratio', 'is_yardstick'));
UPDATE result SET judged = CASE
  WHEN timer = '' THEN 'none'
  WHEN (SELECT backend FROM process JOIN run USING (run_id) JOIN device USING (device_id)
        WHERE process.process_id = result.process_id) = 'cuda' THEN 'span'
  WHEN ratio = 1 AND ratio_low = 1 AND ratio_high = 1 THEN 'is_yardstick'
  WHEN ratio > 0 THEN 'ratio'
  ELSE 'none' END;

CREATE TABLE metric (                    -- numbers about a result that have no column of their own
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,            -- of the kernel, as in the table kernel; -1: of the whole launch
  name      TEXT NOT NULL,
  unit      TEXT NOT NULL,
  value     REAL,                        -- NULL: not finite
  PRIMARY KEY (result_id, ordinal, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE operator (                  -- what a run knew of its program's operators
  run_id    INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  op        TEXT NOT NULL,
  yardstick TEXT NOT NULL,               -- variant that ratios are to; '' on a GPU
  PRIMARY KEY (run_id, op)
) STRICT, WITHOUT ROWID;

-- What an operator's variants are compared with: of the lines whose pattern fits the variant and whose before
-- was measured in the same case, that of the lowest rank. A before is never an after.
CREATE TABLE before (
  run_id  INTEGER NOT NULL,
  op      TEXT NOT NULL,
  rank    INTEGER NOT NULL,
  variant TEXT NOT NULL,                 -- the before
  after   TEXT NOT NULL,                 -- GLOB pattern of the variants that are compared with it
  PRIMARY KEY (run_id, op, rank),
  FOREIGN KEY (run_id, op) REFERENCES operator ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Runs of older versions did not state this; their report `speedup` had these lines. Operators that are not
-- named here have none.
CREATE TEMP TABLE stated (rank, op, backend, variant, after);
INSERT INTO stated
  VALUES (0, 'topk_sort', 'cuda', 'chain3', '*'),
         (0, 'topk_sort', 'host', 'chain', '*'),
         (0, 'qmoe_*', 'cuda', 'single_fp32_acc', 'split_k?_fp32_acc'),
         (1, 'qmoe_*', 'cuda', 'single_fp16_acc', '*'),
         (2, 'qmoe_*', 'cuda', 'single_fp32_acc', '*'),
         (0, 'qmoe_*', 'host', 'single', '*'),
         (0, 'moe_align', 'cuda', 'count_scan_scatter', '*'),
         (0, 'moe_align', 'host', 'counting_sort', '*'),
         (0, 'moe_gate_up', 'cuda', 'gather', '*'),
         (0, 'moe_down', 'cuda', 'gather', '*'),
         (0, 'moe_gate_up', 'host', 'gather', '*'),
         (0, 'moe_down', 'host', 'gather', '*'),
         (0, 'silu_mul_quant', 'cuda', 'two_kernels', '*'),
         (0, 'silu_mul_quant', 'host', 'two_passes', '*'),
         (0, 'moe_sum', 'cuda', 'sum_per_token', '*'),
         (0, 'moe_sum', 'host', 'per_token', '*'),
         (0, 'fused_moe', 'cuda', 'chain_gather', '*'),
         (0, 'fused_moe', 'host', 'chain', '*'),
         (0, 'dense_fc2', 'cuda', 'alpha_per_k_tile_n64', 'alpha_per_expert_n64'),
         (1, 'dense_fc2', 'cuda', 'alpha_per_k_tile', '*'),
         (0, 'dense_fc2', 'host', 'alpha_per_k_tile', '*');
INSERT INTO operator
  SELECT DISTINCT run_id, c.op, iif(backend = 'host', s.variant, '')
  FROM run JOIN device USING (device_id) JOIN run_case USING (run_id) JOIN bench_case c USING (case_id)
  JOIN stated s USING (backend) WHERE c.op GLOB s.op;
INSERT INTO before
  SELECT DISTINCT run_id, o.op, rank, s.variant, after
  FROM operator o JOIN run USING (run_id) JOIN device USING (device_id) JOIN stated s USING (backend)
  WHERE o.op GLOB s.op;
DROP TABLE stated;
