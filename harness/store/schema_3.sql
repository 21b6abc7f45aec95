-- SPDX-License-Identifier: Apache-2.0
-- Version 3, not shipped yet: what else this release needs is added here.

-- Whatever asks about one run begins here. ANALYZE, after a migration and at the end of every run, lets the
-- planner see that few results belong to one run.
CREATE INDEX process_run ON process (run_id);
