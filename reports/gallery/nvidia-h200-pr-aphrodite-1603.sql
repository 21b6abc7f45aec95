-- title: Split-K of the fp8 gate-up on an H200: speed-up over gather with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: ../pr-aphrodite-1603.vg.json
SELECT *
FROM page_1
