-- title: Five pull requests on an H200: speed-up over the kernel before, with 95 % intervals; more is better
-- SPDX-License-Identifier: Apache-2.0
-- Figures of the gallery's pages, which have device, date, commit and protocol: cold L2, span in us. pull-requests.svg is
-- drawn from it by `moegate report reports/gallery/pull-requests.sql --chart reports/gallery/pull-requests.svg`, with
-- any store. The test script.gallery looks every figure up in its page.
WITH published ("pull request", "case", role, variant, "before us", us, "speed-up", "from", "to", page) AS (
  VALUES
-- measured
  ('ROCm/aiter 3526', 'R1 routing, 64 tokens', 'its idea', 'fused_one_block', 10.66, 196.3, 0.05, 0.05, 0.05,
   'nvidia-h200-pr-aiter-3526.md'),
  ('ROCm/aiter 3526', 'R1 routing, 64 tokens', 'best here', 'fused_cluster', 10.66, 4.2, 2.54, 2.52, 2.55,
   'nvidia-h200-pr-aiter-3526.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b int4 FC1, 8 tokens', 'its idea', 'split_k2_fp16_acc', 64.86, 69.18, 0.94, 0.93, 0.94,
   'nvidia-h200-pr-onnxruntime-29167.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b int4 FC1, 8 tokens', 'best here', 'stream_imma', 64.86, 44.65, 1.45, 1.45, 1.46,
   'nvidia-h200-pr-onnxruntime-29167.md'),
  ('aphrodite 1603', 'R1 fp8 gate-up, 1 token', 'its idea', 'split_k8', 35.3, 13.89, 2.542, 2.533, 2.551,
   'nvidia-h200-pr-aphrodite-1603.md'),
  ('aphrodite 1603', 'R1 fp8 gate-up, 1 token', 'best here', 'swap_ab_split_k', 35.3, 11.04, 3.196, 3.141, 3.251,
   'nvidia-h200-pr-aphrodite-1603.md'),
  ('SGLang 10567', 'R1 fp8 down, 8192 tokens', 'its idea', 'sorted_rows + tma_down', 1193.7, 863.8, 1.38, 1.35, 1.41,
   'nvidia-h200-pr-sglang-10567.md'),
  ('SGLang 10567', 'R1 fp8 down, 8192 tokens', 'best here', 'resident_rows', 1193.7, 642.4, 1.86, 1.82, 1.89,
   'nvidia-h200-pr-sglang-10567.md'),
  ('TensorRT-LLM 12686', 'R1 dense FC2, 384 tokens', 'its idea', 'alpha_per_expert', 441.41, 373.82, 1.181, 1.119, 1.246,
   'nvidia-h200-pr-tensorrt-llm-12686.md'),
  ('TensorRT-LLM 12686', 'R1 dense FC2, 384 tokens', 'best here', 'sparse_rows', 441.41, 137.34, 3.214, 3.128, 3.303,
   'nvidia-h200-pr-tensorrt-llm-12686.md')
-- end
)
SELECT * FROM published
