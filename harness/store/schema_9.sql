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
