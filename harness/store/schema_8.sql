-- SPDX-License-Identifier: Apache-2.0

-- Verdicts of a row in many runs are found by their whole key, run by run (reports/pages/case-verdicts.sql). An index
-- over all nights by row made every verdict that is stored touch a page of its own.
DROP INDEX verdict_series;
