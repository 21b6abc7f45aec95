-- SPDX-License-Identifier: Apache-2.0

-- A year of nights repeats itself: the shapes of launches, the names of metrics, and what verifying the same code on
-- the same seeds finds. Each is kept once, under a number. The views kernel, metric, accuracy and seed_error are what
-- the tables of these names were; rows are inserted into the first two as before. Numbers refer to them
-- without REFERENCES: nothing deletes them, and a check of each row that is inserted would buy nothing.

CREATE TABLE launch_shape (
  shape_id  INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,
  grid TEXT NOT NULL, block TEXT NOT NULL, cluster TEXT NOT NULL,
  registers INTEGER NOT NULL, static_shared INTEGER NOT NULL, dynamic_shared INTEGER NOT NULL,
  local_bytes INTEGER NOT NULL,          -- of a thread; -1: unknown
  UNIQUE (name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes)
) STRICT;
CREATE TABLE launch (                    -- the launches of a result, in order of start
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,
  shape_id  INTEGER NOT NULL,
  ns REAL NOT NULL, gap_ns REAL NOT NULL,
  PRIMARY KEY (result_id, ordinal)
) STRICT, WITHOUT ROWID;
INSERT INTO launch_shape (name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes)
  SELECT DISTINCT name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes FROM kernel;
INSERT INTO launch
  SELECT result_id, ordinal, shape_id, ns, gap_ns FROM kernel
  JOIN launch_shape USING (name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes);
DROP TABLE kernel;
CREATE VIEW kernel AS
  SELECT result_id, ordinal, name, grid, block, cluster, registers, static_shared, dynamic_shared, ns, gap_ns, local_bytes
  FROM launch JOIN launch_shape USING (shape_id);
CREATE TRIGGER kernel_insert INSTEAD OF INSERT ON kernel BEGIN
  INSERT INTO launch_shape (name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes)
    VALUES (NEW.name, NEW.grid, NEW.block, NEW.cluster, NEW.registers, NEW.static_shared, NEW.dynamic_shared,
            coalesce(NEW.local_bytes, -1))
    ON CONFLICT DO NOTHING;
  INSERT INTO launch
    SELECT NEW.result_id, NEW.ordinal, shape_id, NEW.ns, NEW.gap_ns FROM launch_shape s
    WHERE s.name = NEW.name AND s.grid = NEW.grid AND s.block = NEW.block AND s.cluster = NEW.cluster AND
          s.registers = NEW.registers AND s.static_shared = NEW.static_shared AND
          s.dynamic_shared = NEW.dynamic_shared AND s.local_bytes = coalesce(NEW.local_bytes, -1);
END;

CREATE TABLE metric_name (
  metric_id INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,
  unit      TEXT NOT NULL,
  UNIQUE (name, unit)
) STRICT;
CREATE TABLE metric_value (              -- numbers about a result that have no column of their own
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,            -- of the kernel, as in launch; -1: of the whole launch
  metric_id INTEGER NOT NULL,
  value     REAL,                        -- NULL: not finite
  PRIMARY KEY (result_id, ordinal, metric_id)
) STRICT, WITHOUT ROWID;
INSERT INTO metric_name (name, unit) SELECT DISTINCT name, unit FROM metric;
INSERT INTO metric_value
  SELECT result_id, ordinal, metric_id, value FROM metric JOIN metric_name USING (name, unit);
DROP TABLE metric;
CREATE VIEW metric AS
  SELECT result_id, ordinal, name, unit, value FROM metric_value JOIN metric_name USING (metric_id);
CREATE TRIGGER metric_insert INSTEAD OF INSERT ON metric BEGIN
  INSERT INTO metric_name (name, unit) VALUES (NEW.name, NEW.unit) ON CONFLICT DO NOTHING;
  INSERT INTO metric_value
    SELECT NEW.result_id, NEW.ordinal, metric_id, NEW.value FROM metric_name n
    WHERE n.name = NEW.name AND n.unit = NEW.unit;
END;

CREATE TABLE verification (              -- what verifying found: the same of every result with the same number
  verification_id INTEGER PRIMARY KEY,
  digest          TEXT NOT NULL UNIQUE   -- of all of it; of older programs' results what names the result
) STRICT;
CREATE TABLE verified_output (
  verification_id INTEGER NOT NULL REFERENCES verification ON DELETE CASCADE,
  output    TEXT NOT NULL,
  ok        INTEGER NOT NULL,
  why       TEXT NOT NULL,
  elements  INTEGER NOT NULL,
  mismatches INTEGER NOT NULL,
  nonfinite INTEGER NOT NULL,
  rel_l2    REAL, cosine REAL, scale REAL, max_abs REAL, max_rel REAL, worst_row REAL, row_p999 REAL,  -- NULL: not finite
  worst_index INTEGER NOT NULL,
  PRIMARY KEY (verification_id, output)
) STRICT, WITHOUT ROWID;
CREATE TABLE verified_seed (             -- one per problem set: accuracy is compared seed by seed
  verification_id INTEGER NOT NULL REFERENCES verification ON DELETE CASCADE,
  seed      INTEGER NOT NULL,
  hash      TEXT NOT NULL,               -- of every output: equal means bit-identical
  rel_l2    REAL, worst_row REAL, bias REAL,  -- the worst over the outputs; NULL: not finite
  PRIMARY KEY (verification_id, seed)
) STRICT, WITHOUT ROWID;
ALTER TABLE result ADD COLUMN verification_id INTEGER NOT NULL DEFAULT 0;  -- 0: nothing was verified
INSERT INTO verification
  SELECT result_id, process.uuid || ' ' || key || ' ' || variant
  FROM (SELECT result_id FROM accuracy UNION SELECT result_id FROM seed_error)
  JOIN result USING (result_id) JOIN process USING (process_id) JOIN bench_case USING (case_id);
INSERT INTO verified_output
  SELECT result_id, output, ok, why, elements, mismatches, nonfinite, rel_l2, cosine, scale, max_abs, max_rel, worst_row,
         row_p999, worst_index
  FROM accuracy;
INSERT INTO verified_seed SELECT result_id, seed, hash, rel_l2, worst_row, bias FROM seed_error;
UPDATE result SET verification_id = result_id WHERE result_id IN (SELECT verification_id FROM verification);
DROP TABLE accuracy;
DROP TABLE seed_error;
CREATE VIEW accuracy AS
  SELECT result_id, output, ok, v.why, elements, mismatches, nonfinite, rel_l2, cosine, scale, max_abs, max_rel, worst_row,
         worst_index, row_p999
  FROM result JOIN verified_output v USING (verification_id);
CREATE VIEW seed_error AS
  SELECT result_id, seed, hash, rel_l2, worst_row, bias FROM result JOIN verified_seed USING (verification_id);

-- How spans are written. 0: little-endian f32, ns, as older programs left them; 1: packed, see packed_spans.h. Reports
-- read a view of the same name, in which they are 0.
ALTER TABLE sample ADD COLUMN packing INTEGER NOT NULL DEFAULT 0 CHECK (packing IN (0, 1));

-- Of a process, so that a list of runs need not count theirs. bytes: what its results made the store grow by, less what
-- `moegate prune` took away; 0: unknown.
ALTER TABLE process ADD COLUMN results INTEGER NOT NULL DEFAULT 0;
ALTER TABLE process ADD COLUMN wall_s REAL NOT NULL DEFAULT 0;
ALTER TABLE process ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
-- What `moegate prune` took away. 1: samples; 2: samples, launches, metrics and stalls.
ALTER TABLE process ADD COLUMN thinned INTEGER NOT NULL DEFAULT 0 CHECK (thinned IN (0, 1, 2));
UPDATE process SET (results, wall_s) =
  (SELECT count(*), ifnull(sum(r.wall_s), 0) FROM result r WHERE r.process_id = process.process_id);

-- What did not run: few of many.
CREATE INDEX result_bad ON result (process_id, status) WHERE status NOT IN ('ok', 'noisy');

CREATE TABLE row_level (                 -- case and variant of a complete run: what is said of it in a history
  run_id     INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  case_id    INTEGER NOT NULL REFERENCES bench_case,
  variant    TEXT NOT NULL,
  status     TEXT NOT NULL,              -- the worst of its processes
  judged     TEXT NOT NULL,
  processes  INTEGER NOT NULL,           -- that measured it
  mean_log   REAL NOT NULL, sd_log REAL NOT NULL,  -- of the level: microseconds, or ratios
  comparable INTEGER NOT NULL CHECK (comparable IN (0, 1)),  -- with the level of another run
  code       TEXT NOT NULL,
  PRIMARY KEY (run_id, case_id, variant)
) STRICT, WITHOUT ROWID;
