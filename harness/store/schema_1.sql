-- SPDX-License-Identifier: Apache-2.0
-- Version 1 of the store. A version never changes: later ones are appended as migrations.
-- '' instead of NULL inside UNIQUE keys, because NULLs defeat uniqueness. No CHECK (json_valid(…)):
-- SQLite 3.40 calls it unsafe under trusted_schema = OFF; the program writes only JSON it made.

CREATE TABLE device (
  device_id    INTEGER PRIMARY KEY,
  backend      TEXT NOT NULL CHECK (backend IN ('host', 'cuda')),
  name         TEXT NOT NULL,
  class        TEXT NOT NULL,            -- baseline class, e.g. nvidia-h200
  uuid         TEXT NOT NULL,
  driver       TEXT NOT NULL,
  processors   INTEGER NOT NULL,
  cache_bytes  INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  shared_per_block INTEGER NOT NULL,
  UNIQUE (uuid, class, driver)
) STRICT;

-- Measured ceilings of a device; `moegate doctor --db` writes them, percent of ceiling reads them.
CREATE TABLE ceiling (
  device_id INTEGER NOT NULL REFERENCES device,
  name      TEXT NOT NULL,               -- read_bytes_per_s, copy_bytes_per_s, bf16_flops, fp8_flops
  value     REAL NOT NULL CHECK (value > 0),
  measured  TEXT NOT NULL,               -- UTC, ISO 8601
  PRIMARY KEY (device_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (                       -- one call of `moegate run`
  run_id    INTEGER PRIMARY KEY,
  label     TEXT NOT NULL,
  started   TEXT NOT NULL,               -- UTC, ISO 8601
  finished  TEXT,
  status    TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'complete', 'interrupted')),
  device_id INTEGER NOT NULL REFERENCES device,
  protocol  INTEGER NOT NULL,
  timer     TEXT NOT NULL,
  flush     TEXT NOT NULL CHECK (flush IN ('read', 'write', 'none', 'lines')),  -- lines: the host
  rounds    INTEGER NOT NULL,
  git_sha   TEXT NOT NULL,               -- commit the program was built from; '' outside a repository
  dirty     INTEGER NOT NULL CHECK (dirty IN (0, 1)),
  build     TEXT NOT NULL,               -- compiler, CUDA version, build type
  host      TEXT NOT NULL,
  command   TEXT NOT NULL,               -- what the user typed
  options   TEXT NOT NULL                -- JSON, for --resume and repro
) STRICT;

CREATE TABLE tag (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE process (                   -- one worker process: the unit of evidence
  process_id INTEGER PRIMARY KEY,
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  round    INTEGER NOT NULL,
  pid      INTEGER NOT NULL,
  started  TEXT NOT NULL,
  throttle TEXT NOT NULL DEFAULT ''      -- clock-throttle reasons seen at its end; '' for none or unknown
) STRICT;

CREATE TABLE bench_case (
  case_id INTEGER PRIMARY KEY,
  key     TEXT NOT NULL UNIQUE,
  op      TEXT NOT NULL,
  params  TEXT NOT NULL,                 -- JSON: every parameter, defaults included
  flops       REAL NOT NULL,
  read_bytes  REAL NOT NULL,
  write_bytes REAL NOT NULL
) STRICT;

CREATE TABLE run_case (                  -- what a run set out to measure, and why
  run_id  INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  case_id INTEGER NOT NULL REFERENCES bench_case,
  suite   TEXT NOT NULL,
  section TEXT NOT NULL,
  facts   TEXT NOT NULL,                 -- JSON {"active_experts": 57, …}: achieved skew
  PRIMARY KEY (run_id, case_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
  result_id  INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process ON DELETE CASCADE,
  case_id    INTEGER NOT NULL REFERENCES bench_case,
  variant    TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN
             ('ok', 'unsupported', 'wrong', 'crashed', 'timeout', 'bad_timer', 'noisy')),
  why        TEXT NOT NULL,
  path       TEXT NOT NULL,
  deterministic INTEGER NOT NULL CHECK (deterministic IN (0, 1)),
  timer      TEXT NOT NULL,
  tick_ns    REAL NOT NULL,
  samples    INTEGER NOT NULL,
  invalid    INTEGER NOT NULL,
  flags      INTEGER NOT NULL,
  span_ns    REAL NOT NULL,
  median_ns  REAL NOT NULL,
  low_ns     REAL NOT NULL,
  high_ns    REAL NOT NULL,
  min_ns     REAL NOT NULL,
  busy_ns    REAL NOT NULL,
  sum_ns     REAL NOT NULL,
  ratio      REAL NOT NULL,
  ratio_low  REAL NOT NULL,
  ratio_high REAL NOT NULL,
  sm_mhz     REAL NOT NULL,
  impossible INTEGER NOT NULL,
  suspect_warm INTEGER NOT NULL,
  wall_s     REAL NOT NULL,
  CHECK (status NOT IN ('ok', 'noisy') OR timer = '' OR (samples > 0 AND span_ns > 0)),
  UNIQUE (process_id, case_id, variant)
) STRICT;
CREATE INDEX result_series ON result (case_id, variant);

CREATE TABLE accuracy (
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  output    TEXT NOT NULL,
  ok        INTEGER NOT NULL,
  why       TEXT NOT NULL,
  elements  INTEGER NOT NULL,
  mismatches INTEGER NOT NULL,
  nonfinite INTEGER NOT NULL,
  rel_l2    REAL, cosine REAL, scale REAL, max_abs REAL, max_rel REAL, worst_row REAL,  -- NULL: not finite
  worst_index INTEGER NOT NULL,
  PRIMARY KEY (result_id, output)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel (                    -- the launches of a result, in order of start
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,
  name      TEXT NOT NULL,
  grid TEXT NOT NULL, block TEXT NOT NULL, cluster TEXT NOT NULL,
  registers INTEGER NOT NULL, static_shared INTEGER NOT NULL, dynamic_shared INTEGER NOT NULL,
  ns REAL NOT NULL, gap_ns REAL NOT NULL,
  PRIMARY KEY (result_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (                    -- spans of the valid samples: little-endian f32, ns, in order
  result_id INTEGER PRIMARY KEY REFERENCES result ON DELETE CASCADE,
  spans     BLOB NOT NULL
) STRICT;

CREATE TABLE verdict (                   -- what the gate or compare decided, with the numbers it used
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  case_id  INTEGER NOT NULL REFERENCES bench_case,
  variant  TEXT NOT NULL,
  against  TEXT NOT NULL,                -- baseline file or run
  outcome  TEXT NOT NULL CHECK (outcome IN
           ('pass', 'regressed', 'improved', 'inconclusive', 'wrong', 'missing', 'new', 'environment')),
  base     REAL, head REAL, effect REAL, low REAL, high REAL, p REAL, p_adjusted REAL, mde REAL,
  why      TEXT NOT NULL,
  PRIMARY KEY (run_id, against, case_id, variant)
) STRICT, WITHOUT ROWID;
