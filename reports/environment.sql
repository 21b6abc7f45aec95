-- title: what kernels from elsewhere ran with, or with --against what differs: packages, compilers, variables
-- SPDX-License-Identifier: Apache-2.0
-- keep: kind; name; before; now
-- A package or library is what its processes had loaded at their ends. content is a digest; a secret has no text. An
-- item that does not count is a variable that names folders: what was loaded from there counts.
WITH item AS (
  SELECT DISTINCT run_id, kind, name, value, i.digest, counts
  FROM process JOIN environment_item i USING (environment_id)
  WHERE run_id IN (:run, :against)
  ORDER BY run_id, kind, name, value, i.digest
), side AS (
  SELECT run_id, kind, name, group_concat(value, '/') AS value, group_concat(digest, '/') AS digest,
         min(counts) AS counts
  FROM item GROUP BY run_id, kind, name
), both AS (
  SELECT kind, name, b.value AS before, h.value AS now, b.digest AS content_before, h.digest AS content,
         coalesce(h.counts, b.counts) AS counts
  FROM (SELECT DISTINCT kind, name FROM side) AS n
  LEFT JOIN (SELECT * FROM side WHERE run_id = :against) AS b USING (kind, name)
  LEFT JOIN (SELECT * FROM side WHERE run_id = :run) AS h USING (kind, name)
)
SELECT kind, name, before, now, content_before AS "content before", content, counts
FROM both
WHERE :against IS NULL OR (counts AND (before IS NOT now OR content_before IS NOT content))
ORDER BY kind, name
