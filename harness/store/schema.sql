-- SPDX-License-Identifier: Apache-2.0
-- The schema of a store. A new store is made by these statements, and one whose statements say something else is
-- refused; comments and white space may change. What else may change, and how: CONTRACTS.md.
--
-- Times of day are UTC in ISO 8601. The suffixes _ns, _s and _bytes are units. A key that may be unknown is '' and not
-- NULL, because NULLs are all different in a UNIQUE constraint. Columns with JSON have no CHECK (json_valid(...)):
-- SQLite 3.40 calls that unsafe under trusted_schema = OFF.

PRAGMA application_id = 0x4D6F4547;      -- "MoEG"; store_open.cc has both numbers, too.
PRAGMA user_version = 2;

-- Devices, and what they can do at most.

CREATE TABLE device (
  device_id    INTEGER PRIMARY KEY,
  backend      TEXT NOT NULL CHECK (backend IN ('host', 'cuda')),
  name         TEXT NOT NULL,
  class        TEXT NOT NULL,            -- The class of its baselines, for example nvidia-h200.
  uuid         TEXT NOT NULL,
  driver       TEXT NOT NULL,
  processors   INTEGER NOT NULL,
  cache_bytes  INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  shared_per_block INTEGER NOT NULL,     -- bytes
  UNIQUE (uuid, class, driver)
) STRICT;

-- A rate that `moegate doctor --db` measured on a device. Percent of a ceiling is a share of it.
CREATE TABLE ceiling (
  device_id INTEGER NOT NULL REFERENCES device,
  name      TEXT NOT NULL,               -- read_bytes_per_s, copy_bytes_per_s, bf16_flops, fp8_flops
  value     REAL NOT NULL CHECK (value > 0),
  measured  TEXT NOT NULL,
  PRIMARY KEY (device_id, name)
) STRICT, WITHOUT ROWID;

-- Runs, and the campaigns that several machines measure a share of each.

-- One call of `moegate run`. Its uuid is its name in every store; run_id means something in this one only.
CREATE TABLE run (
  run_id    INTEGER PRIMARY KEY,
  label     TEXT NOT NULL,
  started   TEXT NOT NULL,
  finished  TEXT,
  status    TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'complete', 'interrupted')),
  device_id INTEGER NOT NULL REFERENCES device,
  protocol  INTEGER NOT NULL,            -- The number of the measuring protocol.
  timer     TEXT NOT NULL,
  flush     TEXT NOT NULL CHECK (flush IN ('read', 'write', 'none', 'lines')),  -- A host flushes lines.
  rounds    INTEGER NOT NULL,
  git_sha   TEXT NOT NULL,               -- The commit that the program was built from; '' outside a repository.
  dirty     INTEGER NOT NULL CHECK (dirty IN (0, 1)),
  build     TEXT NOT NULL,               -- compiler, CUDA version, build type
  host      TEXT NOT NULL,
  command   TEXT NOT NULL,               -- What the user typed.
  options   TEXT NOT NULL,               -- JSON, which --resume and repro read.
  program   TEXT NOT NULL DEFAULT '',    -- A hash of the content of the program that measured.
  uuid      TEXT NOT NULL DEFAULT '',
  campaign  TEXT NOT NULL DEFAULT '',    -- The uuid of what it is one run of; its own where it stands alone.
  task      TEXT NOT NULL DEFAULT 'measure'  -- Only what was measured is judged; the others are a profiler's.
            CHECK (task IN ('measure', 'compile', 'counters', 'stalls', 'energy')),
  shard     INTEGER NOT NULL DEFAULT 0   -- Its number in the campaign, from 1; 0: the run is all there is of it.
) STRICT;
CREATE UNIQUE INDEX run_uuid ON run (uuid);
CREATE INDEX run_campaign ON run (campaign);

CREATE TABLE tag (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

-- One selection of rows, dealt out over shards.
CREATE TABLE campaign (
  uuid    TEXT PRIMARY KEY,              -- run.campaign names it.
  created TEXT NOT NULL,                 -- when its first shard began
  label   TEXT NOT NULL,
  shards  INTEGER NOT NULL CHECK (shards >= 1)
) STRICT, WITHOUT ROWID;

-- A run that `moegate merge` made part of its campaign's one run, which has its processes and rows now.
CREATE TABLE shard (
  run_id    INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,  -- the campaign's run
  shard     INTEGER NOT NULL,            -- from 1, as in its processes
  uuid      TEXT NOT NULL,
  device_id INTEGER NOT NULL REFERENCES device,
  label     TEXT NOT NULL,
  started   TEXT NOT NULL,
  finished  TEXT NOT NULL,
  host      TEXT NOT NULL,
  command   TEXT NOT NULL,
  tags      TEXT NOT NULL,               -- JSON
  PRIMARY KEY (run_id, shard)
) STRICT, WITHOUT ROWID;

-- What a run knew of its program's operators.
CREATE TABLE operator (
  run_id    INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  op        TEXT NOT NULL,
  yardstick TEXT NOT NULL,               -- The variant that ratios are to; '' on a GPU.
  PRIMARY KEY (run_id, op)
) STRICT, WITHOUT ROWID;

-- What an operator's variants are compared with: of the lines whose pattern fits the variant and whose before was
-- measured in the same case, the one of the lowest rank counts. A before is never an after.
CREATE TABLE before (
  run_id  INTEGER NOT NULL,
  op      TEXT NOT NULL,
  rank    INTEGER NOT NULL,
  variant TEXT NOT NULL,                 -- the before
  after   TEXT NOT NULL,                 -- a GLOB pattern of the variants that are compared with it
  PRIMARY KEY (run_id, op, rank),
  FOREIGN KEY (run_id, op) REFERENCES operator ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What a process ran kernels from elsewhere with.
CREATE TABLE environment (
  environment_id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,           -- of all its items
  hash   TEXT NOT NULL                   -- of those that count: what makes two environments one
) STRICT;

CREATE TABLE environment_item (
  environment_id INTEGER NOT NULL REFERENCES environment ON DELETE CASCADE,
  kind   TEXT NOT NULL,                  -- python, package, library, tool, variable
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,                  -- A version, or what a variable holds; '': unknown, or a secret.
  digest TEXT NOT NULL,                  -- of its content; '': none is known
  counts INTEGER NOT NULL CHECK (counts IN (0, 1)),  -- 0: a variable that names folders
  PRIMARY KEY (environment_id, kind, name, value, digest)
) STRICT, WITHOUT ROWID;

-- One worker process: the unit of evidence. It counts its results, so that a list of runs need not.
CREATE TABLE process (
  process_id INTEGER PRIMARY KEY,
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  round    INTEGER NOT NULL,
  pid      INTEGER NOT NULL,
  started  TEXT NOT NULL,
  throttle TEXT NOT NULL DEFAULT '',     -- Reasons that the clock was throttled for at its end; '': none, or unknown.
  uuid     TEXT NOT NULL DEFAULT '',     -- its name in every store
  shard    INTEGER NOT NULL DEFAULT 0,   -- of the campaign, from 1; 0: its run is no shard.
  results  INTEGER NOT NULL DEFAULT 0,
  wall_s   REAL NOT NULL DEFAULT 0,
  bytes    INTEGER NOT NULL DEFAULT 0,   -- What its results made the store grow by, less what was pruned; 0: unknown.
  thinned  INTEGER NOT NULL DEFAULT 0    -- What `moegate prune` took. 1: samples; 2: launches, metrics and stalls, too.
           CHECK (thinned IN (0, 1, 2)),
  environment_id INTEGER NOT NULL DEFAULT 0  -- at its end; 0: unknown, or without kernels from elsewhere
) STRICT;
CREATE INDEX process_run ON process (run_id);  -- Whatever asks about one run begins here.
CREATE UNIQUE INDEX process_uuid ON process (uuid);

-- Cases, and the results of a process in them.

CREATE TABLE bench_case (
  case_id INTEGER PRIMARY KEY,
  key     TEXT NOT NULL UNIQUE,
  op      TEXT NOT NULL,
  params  TEXT NOT NULL,                 -- JSON: every parameter, defaults included.
  flops       REAL NOT NULL,             -- These three are of one launch.
  read_bytes  REAL NOT NULL,
  write_bytes REAL NOT NULL
) STRICT;

-- What a run set out to measure, and why.
CREATE TABLE run_case (
  run_id  INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  case_id INTEGER NOT NULL REFERENCES bench_case,
  suite   TEXT NOT NULL,
  section TEXT NOT NULL,
  facts   TEXT NOT NULL,                 -- JSON, {"active_experts": 57, ...}: what the routing came to.
  PRIMARY KEY (run_id, case_id)
) STRICT, WITHOUT ROWID;

-- What one process found out about one variant in one case. harness/values/result.h says it of each number.
CREATE TABLE result (
  result_id  INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process ON DELETE CASCADE,
  case_id    INTEGER NOT NULL REFERENCES bench_case,
  variant    TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN
             ('ok', 'unsupported', 'wrong', 'crashed', 'timeout', 'bad_timer', 'noisy')),
  why        TEXT NOT NULL,              -- a sentence for every status but ok
  path       TEXT NOT NULL,              -- The path that the variant took inside; '' where it has one only.
  deterministic INTEGER NOT NULL CHECK (deterministic IN (0, 1)),
  timer      TEXT NOT NULL,              -- '': nothing was timed.
  tick_ns    REAL NOT NULL,
  samples    INTEGER NOT NULL,           -- valid ones
  invalid    INTEGER NOT NULL,
  flags      INTEGER NOT NULL,           -- reasons of the invalid ones: bits of SampleFlag (values/result.h)
  span_ns    REAL NOT NULL,              -- The 10 % trimmed mean of the valid samples.
  median_ns  REAL NOT NULL,
  low_ns     REAL NOT NULL,              -- The 95 % interval of the median.
  high_ns    REAL NOT NULL,
  min_ns     REAL NOT NULL,
  busy_ns    REAL NOT NULL,
  sum_ns     REAL NOT NULL,
  ratio      REAL NOT NULL,              -- On a host: the median of span over yardstick, in pairs.
  ratio_low  REAL NOT NULL,
  ratio_high REAL NOT NULL,
  sm_mhz     REAL NOT NULL,
  impossible INTEGER NOT NULL,
  suspect_warm INTEGER NOT NULL,
  wall_s     REAL NOT NULL,              -- what it cost in all
  code       TEXT NOT NULL DEFAULT '',   -- A hash of what was launched: machine code and geometry; '': unknown.
  slow       INTEGER NOT NULL DEFAULT 0, -- Of the invalid samples, those with a slow clock alone.
  -- Which number is judged: span_ns, ratio, or none of a yardstick's own.
  judged     TEXT NOT NULL DEFAULT 'none' CHECK (judged IN ('none', 'span', 'ratio', 'is_yardstick')),
  -- What the ratio is to. Ratios to another variant, or to other code of it, do not compare.
  yardstick      TEXT NOT NULL DEFAULT '',  -- '': none, or unknown
  yardstick_code TEXT NOT NULL DEFAULT '',  -- like code
  -- Plain means beside span_ns and ratio, which leave out what few launches do; 0: unknown.
  mean_ns    REAL NOT NULL DEFAULT 0,
  mean_ratio REAL NOT NULL DEFAULT 0,    -- of the spans, over the mean of the yardstick's
  verification_id INTEGER NOT NULL DEFAULT 0,  -- 0: nothing was verified.
  -- Whether the row is what its run stored: a flipped bit in a number is a number. They are over what a verdict reads
  -- of it, and over its accuracy and seeds (result_checksum.h). 0: whoever inserted the row made none.
  checksum          INTEGER NOT NULL DEFAULT 0,
  verified_checksum INTEGER NOT NULL DEFAULT 0,
  CHECK (status NOT IN ('ok', 'noisy') OR timer = '' OR (samples > 0 AND span_ns > 0)),
  UNIQUE (process_id, case_id, variant)
) STRICT;
CREATE INDEX result_series ON result (case_id, variant);
CREATE INDEX result_bad ON result (process_id, status) WHERE status NOT IN ('ok', 'noisy');  -- few of many

-- A year of nights repeats itself: the shapes of launches, the names of metrics, and what verifying the same code on
-- the same seeds finds. Each is kept once, under a number. Numbers refer to them without REFERENCES: nothing deletes
-- them, and a check of each row that is inserted would buy nothing. The views kernel, metric, accuracy and seed_error
-- have a row for each result; rows are inserted into the first two.

-- What verifying found. It is the same of every result with the same number.
CREATE TABLE verification (
  verification_id INTEGER PRIMARY KEY,
  digest          TEXT NOT NULL UNIQUE   -- of all of it
) STRICT;

-- One output of it. NULL is a number that is not finite.
CREATE TABLE verified_output (
  verification_id INTEGER NOT NULL REFERENCES verification ON DELETE CASCADE,
  output    TEXT NOT NULL,
  ok        INTEGER NOT NULL,
  why       TEXT NOT NULL,
  elements  INTEGER NOT NULL,
  mismatches INTEGER NOT NULL,
  nonfinite INTEGER NOT NULL,
  rel_l2    REAL, cosine REAL, scale REAL, max_abs REAL, max_rel REAL,
  worst_row REAL, row_p999 REAL,         -- The largest row error, and the 99.9th percentile of them.
  worst_index INTEGER NOT NULL,
  truth     REAL DEFAULT 0,              -- The magnitudes of the truth's elements, weighed and added up; 0: unknown.
  rounded_between REAL DEFAULT -1,       -- What the operator states that a kernel rounds in between; -1: nothing.
  -- What the output's own rounding does not explain (values/rounding.h). graded = 0: not known, or integers.
  graded    INTEGER NOT NULL DEFAULT 0,
  misrounded REAL DEFAULT 0, row_misrounded REAL DEFAULT 0, column_misrounded REAL DEFAULT 0,
  excess    REAL DEFAULT 0,
  beyond    REAL DEFAULT 0,
  common_scale REAL DEFAULT 0,
  row_scale REAL DEFAULT 0, row_scale_most REAL DEFAULT 0,
  column_scale REAL DEFAULT 0, column_scale_most REAL DEFAULT 0,
  digits    INTEGER NOT NULL DEFAULT 0,  -- of the output's type
  by_chance REAL DEFAULT 0,              -- What values next to a tie may add.
  at_row    INTEGER NOT NULL DEFAULT -1,
  at_column INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (verification_id, output)
) STRICT, WITHOUT ROWID;

-- One problem set of it, the worst over the outputs: accuracy is compared seed by seed. NULL is a number that is not
-- finite.
CREATE TABLE verified_seed (
  verification_id INTEGER NOT NULL REFERENCES verification ON DELETE CASCADE,
  seed      INTEGER NOT NULL,
  hash      TEXT NOT NULL,               -- of every output: equal means bit-identical.
  rel_l2    REAL, worst_row REAL, bias REAL,
  -- What the operator asked of the variant, so that two programs that ask otherwise are not compared; '0', 0: unknown.
  inputs    TEXT NOT NULL DEFAULT '0',   -- a hash of what is in them
  terms     TEXT NOT NULL DEFAULT '0',   -- hashes of tensors (24 bits), tolerances and cost (20 each)
  truth     REAL DEFAULT 0,
  -- As in verified_output.
  graded    INTEGER NOT NULL DEFAULT 0,
  misrounded REAL DEFAULT 0, row_misrounded REAL DEFAULT 0, column_misrounded REAL DEFAULT 0,
  excess    REAL DEFAULT 0,
  beyond    REAL DEFAULT 0,
  common_scale REAL DEFAULT 0,
  row_scale REAL DEFAULT 0, row_scale_most REAL DEFAULT 0,
  column_scale REAL DEFAULT 0, column_scale_most REAL DEFAULT 0,
  digits    INTEGER NOT NULL DEFAULT 0,
  by_chance REAL DEFAULT 0,
  at_row    INTEGER NOT NULL DEFAULT -1,
  at_column INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (verification_id, seed)
) STRICT, WITHOUT ROWID;

CREATE VIEW accuracy AS
  SELECT result_id, output, ok, v.why, elements, mismatches, nonfinite, rel_l2, cosine, scale, max_abs, max_rel, worst_row,
         worst_index, row_p999
  FROM result JOIN verified_output v USING (verification_id);

CREATE VIEW seed_error AS
  SELECT result_id, seed, hash, rel_l2, worst_row, bias FROM result JOIN verified_seed USING (verification_id);

-- A kernel, and how it was launched.
CREATE TABLE launch_shape (
  shape_id  INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,
  grid TEXT NOT NULL, block TEXT NOT NULL, cluster TEXT NOT NULL,
  registers INTEGER NOT NULL, static_shared INTEGER NOT NULL, dynamic_shared INTEGER NOT NULL,
  local_bytes INTEGER NOT NULL,          -- of a thread; -1: unknown
  UNIQUE (name, grid, block, cluster, registers, static_shared, dynamic_shared, local_bytes)
) STRICT;

-- The launches of a result, in order of start.
CREATE TABLE launch (
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,
  shape_id  INTEGER NOT NULL,
  ns REAL NOT NULL, gap_ns REAL NOT NULL,
  PRIMARY KEY (result_id, ordinal)
) STRICT, WITHOUT ROWID;

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

-- Numbers about a result that have no column of their own.
CREATE TABLE metric_value (
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,            -- of the kernel, as in launch; -1: of the whole launch
  metric_id INTEGER NOT NULL,
  value     REAL,                        -- NULL: not finite
  PRIMARY KEY (result_id, ordinal, metric_id)
) STRICT, WITHOUT ROWID;

CREATE VIEW metric AS
  SELECT result_id, ordinal, name, unit, value FROM metric_value JOIN metric_name USING (metric_id);
CREATE TRIGGER metric_insert INSTEAD OF INSERT ON metric BEGIN
  INSERT INTO metric_name (name, unit) VALUES (NEW.name, NEW.unit) ON CONFLICT DO NOTHING;
  INSERT INTO metric_value
    SELECT NEW.result_id, NEW.ordinal, metric_id, NEW.value FROM metric_name n
    WHERE n.name = NEW.name AND n.unit = NEW.unit;
END;

-- Instructions at which warps waited, and for what: the hottest of each kernel.
CREATE TABLE stall (
  result_id   INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal     INTEGER NOT NULL,          -- of the kernel, as in launch
  offset      INTEGER NOT NULL,          -- bytes from the kernel's start
  instruction TEXT NOT NULL,             -- SASS; '': unknown
  line        TEXT NOT NULL,             -- 'file.cu:12'; '': without line information
  reason      TEXT NOT NULL,
  samples     INTEGER NOT NULL,
  PRIMARY KEY (result_id, ordinal, offset, reason)
) STRICT, WITHOUT ROWID;

-- The spans of a result's valid samples, in order. Reports see a view of the same name, in which they are unpacked.
CREATE TABLE sample (
  result_id INTEGER PRIMARY KEY REFERENCES result ON DELETE CASCADE,
  spans     BLOB NOT NULL,
  packing   INTEGER NOT NULL DEFAULT 0   -- 0: little-endian f32, ns; 1: packed, see packed_spans.h.
            CHECK (packing IN (0, 1))
) STRICT;

-- What is said of runs and their rows.

-- A case and variant of a complete run: what a history says of it.
CREATE TABLE row_level (
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

-- What a gate or a comparison decided, with the numbers that it used. The row is named by texts, so that a case of a
-- baseline which this store has never run has its verdict, too. Verdicts of a row in many runs are found run by run: an
-- index over all nights by row would make every verdict that is stored touch a page of its own.
CREATE TABLE verdict (
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  against  TEXT NOT NULL,                -- a baseline file, or a run
  suite    TEXT NOT NULL,
  key      TEXT NOT NULL,
  variant  TEXT NOT NULL,
  outcome  TEXT NOT NULL CHECK (outcome IN ('pass', 'identical', 'regressed', 'improved', 'inconclusive', 'wrong',
                                            'missing', 'new', 'environment', 'waived')),
  stage    INTEGER NOT NULL CHECK (stage IN (0, 1, 2)),  -- 0: nothing timed; 1: stored numbers; 2: replayed.
  base     REAL, head REAL, effect REAL, low REAL, high REAL, df REAL, p REAL, p_adjusted REAL, mde REAL,
  blind    INTEGER NOT NULL CHECK (blind IN (0, 1)),
  family   INTEGER NOT NULL,             -- how many cases were judged together
  waiver   TEXT NOT NULL,                -- The id of the waiver that applies; '': none.
  why      TEXT NOT NULL,
  cause    TEXT NOT NULL DEFAULT '',     -- Why it differs, in one sentence; '': nobody asked.
  PRIMARY KEY (run_id, against, suite, key, variant)
) STRICT, WITHOUT ROWID;

-- What `moegate selftest` found out about the gate itself.
CREATE TABLE calibration (
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,  -- the head's run
  injected REAL NOT NULL,                -- The slow-down that was built into the head, as a share; 0: A/A.
  rounds   INTEGER NOT NULL,             -- process pairs that decided
  judged   INTEGER NOT NULL,             -- rows
  screened INTEGER NOT NULL,             -- of them, sent on by the screen
  failed   INTEGER NOT NULL,             -- of them, called regressed: false alarms where nothing was injected
  effect   REAL NOT NULL,                -- the mean estimate, as a share
  sd       REAL NOT NULL,                -- median over rows of the log ratio's deviation between process pairs
  lambda   REAL NOT NULL,                -- median z^2 / 0.4549: 1 where the assumed error is right.
  mde      REAL NOT NULL,                -- median
  blind    INTEGER NOT NULL,
  PRIMARY KEY (run_id, injected)
) STRICT, WITHOUT ROWID;
