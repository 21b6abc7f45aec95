-- title: Layers on an H100: time over that of the best variant
-- SPDX-License-Identifier: Apache-2.0
-- chart: bars.vg.json
WITH t AS (
  SELECT * FROM page_1 UNION ALL SELECT * FROM page_2
), each AS (
  SELECT heading, tokens, chosen, 'one_launch' AS variant, one_launch AS us FROM t
  UNION ALL SELECT heading, tokens, chosen, 'chain_tuned', chain_tuned FROM t
  UNION ALL SELECT heading, tokens, chosen, 'chain_sorted', chain_sorted FROM t
  UNION ALL SELECT heading, tokens, chosen, 'chain_gather', chain_gather FROM t
), best AS (
  SELECT heading, tokens, min(CAST(us AS REAL)) AS us FROM each WHERE us <> '' GROUP BY heading, tokens
)
SELECT heading AS panel,
       tokens || ' tokens' AS label,
       variant AS series,
       round(CAST(each.us AS REAL) / best.us, 2) AS value,
       'time over that of the best; less is better' AS axis
FROM each JOIN best USING (heading, tokens) WHERE each.us <> ''
