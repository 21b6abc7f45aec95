-- SPDX-License-Identifier: Apache-2.0

-- What a ratio is to: levels that are ratios to another variant, or to other code of it, do not compare. Older
-- runs state the name with their operators; the code is that of the yardstick's own row in the same process.
ALTER TABLE result ADD COLUMN yardstick TEXT NOT NULL DEFAULT '';       -- '': none, or unknown
ALTER TABLE result ADD COLUMN yardstick_code TEXT NOT NULL DEFAULT '';  -- like code; '' for unknown
UPDATE result SET yardstick = coalesce(
  (SELECT o.yardstick FROM process p JOIN bench_case c ON c.case_id = result.case_id
   JOIN operator o ON o.run_id = p.run_id AND o.op = c.op WHERE p.process_id = result.process_id), '')
  WHERE judged IN ('ratio', 'is_yardstick');
UPDATE result SET yardstick_code = coalesce(
  (SELECT y.code FROM result y WHERE y.process_id = result.process_id AND y.case_id = result.case_id
   AND y.variant = result.yardstick), '')
  WHERE yardstick <> '';

-- Plain means beside span_ns and ratio, which leave out what only some launches do; 0: not stated.
ALTER TABLE result ADD COLUMN mean_ns REAL NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN mean_ratio REAL NOT NULL DEFAULT 0;  -- of the spans, over the mean of the yardstick's
