-- SPDX-License-Identifier: Apache-2.0

-- What runs and processes are called in every store, and the campaigns that several machines measure a share of each.

CREATE TABLE campaign (                  -- one selection of rows, dealt out over shards
  uuid    TEXT PRIMARY KEY,              -- run.campaign
  created TEXT NOT NULL,                 -- UTC, ISO 8601: when its first shard began
  label   TEXT NOT NULL,
  shards  INTEGER NOT NULL CHECK (shards >= 1)
) STRICT, WITHOUT ROWID;

ALTER TABLE run ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;  -- of its campaign, from 1; 0: all that there is of it

-- A run that `moegate merge` made part of its campaign's one run, whose processes and rows are that one's now.
CREATE TABLE shard (
  run_id    INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,  -- the campaign's
  shard     INTEGER NOT NULL,            -- from 1; that of its processes
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
CREATE INDEX run_campaign ON run (campaign);

-- Copies of an old store give a process the same name: that of its run, and its number in it.
ALTER TABLE process ADD COLUMN uuid TEXT NOT NULL DEFAULT '';
UPDATE process SET uuid = (SELECT uuid FROM run WHERE run.run_id = process.run_id) || '-' || process_id;
CREATE UNIQUE INDEX process_uuid ON process (uuid);
ALTER TABLE process ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;  -- of the campaign, from 1; 0: its run is no shard
