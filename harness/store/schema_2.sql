-- SPDX-License-Identifier: Apache-2.0
-- Version 2: what replayed verdicts need. Verdicts are keyed by text, so that a case of a baseline that
-- this store has never run has its row too.

ALTER TABLE run ADD COLUMN program TEXT NOT NULL DEFAULT '';  -- content hash of the program that measured
ALTER TABLE result ADD COLUMN code TEXT NOT NULL DEFAULT '';  -- of what was launched: machine code and geometry; '' for unknown
ALTER TABLE accuracy ADD COLUMN row_p999 REAL;                -- 99.9th percentile of the row errors

CREATE TABLE seed_error (                -- one per problem set: accuracy is compared seed by seed
  result_id INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  seed      INTEGER NOT NULL,
  hash      TEXT NOT NULL,               -- of every output: equal means bit-identical
  rel_l2    REAL, worst_row REAL, bias REAL,  -- the worst over the outputs; NULL: not finite
  PRIMARY KEY (result_id, seed)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdict_2 (
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  against  TEXT NOT NULL,                -- baseline file or run
  suite    TEXT NOT NULL,
  key      TEXT NOT NULL,
  variant  TEXT NOT NULL,
  outcome  TEXT NOT NULL CHECK (outcome IN ('pass', 'identical', 'regressed', 'improved', 'inconclusive', 'wrong',
                                            'missing', 'new', 'environment', 'waived')),
  stage    INTEGER NOT NULL CHECK (stage IN (0, 1, 2)),  -- 0: nothing timed, 1: stored numbers, 2: replayed
  base     REAL, head REAL, effect REAL, low REAL, high REAL, df REAL, p REAL, p_adjusted REAL, mde REAL,
  blind    INTEGER NOT NULL CHECK (blind IN (0, 1)),
  family   INTEGER NOT NULL,             -- cases that were judged together
  waiver   TEXT NOT NULL,                -- id of the waiver that applies; '' for none
  why      TEXT NOT NULL,
  PRIMARY KEY (run_id, against, suite, key, variant)
) STRICT, WITHOUT ROWID;
INSERT INTO verdict_2
  SELECT run_id, against, coalesce(suite, ''), key, variant, outcome, iif(p IS NULL, 0, 1), base, head, effect, low, high, NULL,
         p, p_adjusted, mde, 0, 0, '', why
  FROM verdict JOIN bench_case USING (case_id) LEFT JOIN run_case USING (run_id, case_id);
DROP TABLE verdict;
ALTER TABLE verdict_2 RENAME TO verdict;

CREATE TABLE calibration (               -- what `moegate selftest` found out about the gate itself
  run_id   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,  -- the head run
  injected REAL NOT NULL,                -- slow-down built into the head, as a share; 0: A/A
  rounds   INTEGER NOT NULL,             -- process pairs that decided
  judged   INTEGER NOT NULL,             -- rows
  screened INTEGER NOT NULL,             -- of them, sent on by the screen
  failed   INTEGER NOT NULL,             -- of them, called regressed: false alarms where nothing was injected
  effect   REAL NOT NULL,                -- mean estimate, as a share
  sd       REAL NOT NULL,                -- median over rows of the log ratio's deviation between process pairs
  lambda   REAL NOT NULL,                -- median z^2 / 0.4549: 1 where the assumed error is right
  mde      REAL NOT NULL,                -- median
  blind    INTEGER NOT NULL,
  PRIMARY KEY (run_id, injected)
) STRICT, WITHOUT ROWID;
