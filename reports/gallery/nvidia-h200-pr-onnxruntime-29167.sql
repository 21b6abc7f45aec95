-- title: int4 QMoE layers on an H200, one token: span and the ratio's interval
-- SPDX-License-Identifier: Apache-2.0
-- chart: ../pr-onnxruntime-29167.vg.json
SELECT *
FROM page_1
WHERE other = 'scale-block=0'
