-- title: Sorted rows and TMA on an H200: speed-up over gather with 95 % interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: ../pr-sglang-10567.vg.json
SELECT *
FROM page_1
