-- SPDX-License-Identifier: Apache-2.0

-- What issues of trust and accuracy add to a row: each statement says which.

-- What an operator asked of a variant, so that two programs which ask otherwise are not compared; '0' and 0: unknown.
ALTER TABLE verified_output ADD COLUMN truth REAL DEFAULT 0;             -- its elements' magnitudes, weighed and added up
ALTER TABLE verified_seed ADD COLUMN inputs TEXT NOT NULL DEFAULT '0';   -- hash of what is in them
ALTER TABLE verified_seed ADD COLUMN terms TEXT NOT NULL DEFAULT '0';    -- of tensors (24 bits), tolerances and cost (20 each)
ALTER TABLE verified_seed ADD COLUMN truth REAL DEFAULT 0;

-- Whether a result is what its run stored: a flipped bit in a number is a number. Over what a verdict reads of it, and
-- over its accuracy and seeds (result_checksum.h). 0: unknown, a row of an older program.
ALTER TABLE result ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN verified_checksum INTEGER NOT NULL DEFAULT 0;

-- What an output's own rounding does not explain (values/rounding.h), of each output, and the worst of each seed's;
-- graded = 0: not known, or integers. `rounded_between` is what the operator states that a kernel rounds in between (-1: nothing
-- is stated), `digits` are those of the output's type, `by_chance` is what values next to a tie may add.
ALTER TABLE verified_output ADD COLUMN rounded_between REAL DEFAULT -1;
ALTER TABLE verified_output ADD COLUMN graded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN misrounded REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN row_misrounded REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN column_misrounded REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN excess REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN beyond REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN common_scale REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN row_scale REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN row_scale_most REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN column_scale REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN column_scale_most REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN digits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN by_chance REAL DEFAULT 0;
ALTER TABLE verified_output ADD COLUMN at_row INTEGER NOT NULL DEFAULT -1;
ALTER TABLE verified_output ADD COLUMN at_column INTEGER NOT NULL DEFAULT -1;
ALTER TABLE verified_seed ADD COLUMN graded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN misrounded REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN row_misrounded REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN column_misrounded REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN excess REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN beyond REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN common_scale REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN row_scale REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN row_scale_most REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN column_scale REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN column_scale_most REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN digits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN by_chance REAL DEFAULT 0;
ALTER TABLE verified_seed ADD COLUMN at_row INTEGER NOT NULL DEFAULT -1;
ALTER TABLE verified_seed ADD COLUMN at_column INTEGER NOT NULL DEFAULT -1;
