-- SPDX-License-Identifier: Apache-2.0

-- What a run's rows are of: latencies, or what a profiler saw. Only the former are judged.
ALTER TABLE run ADD COLUMN task TEXT NOT NULL DEFAULT 'measure'
  CHECK (task IN ('measure', 'counters', 'stalls', 'energy'));

ALTER TABLE kernel ADD COLUMN local_bytes INTEGER NOT NULL DEFAULT -1;  -- of a thread; -1: unknown

CREATE TABLE stall (                     -- instructions at which warps waited, and for what
  result_id   INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
  ordinal     INTEGER NOT NULL,          -- of the kernel, as in the table kernel
  offset      INTEGER NOT NULL,          -- bytes from the kernel's start
  instruction TEXT NOT NULL,             -- SASS; '' for unknown
  line        TEXT NOT NULL,             -- 'file.cu:12'; '' without line information
  reason      TEXT NOT NULL,
  samples     INTEGER NOT NULL,
  PRIMARY KEY (result_id, ordinal, offset, reason)
) STRICT, WITHOUT ROWID;

-- The verdicts of a row in all runs, without reading all verdicts of all rows.
CREATE INDEX verdict_series ON verdict (key, variant);

ALTER TABLE verdict ADD COLUMN cause TEXT NOT NULL DEFAULT '';  -- why it differs, one sentence; '' for not asked
