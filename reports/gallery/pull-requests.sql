-- title: Five pull requests on one GPU: speed-up over the kernel before, with 95 % intervals; more is better
-- SPDX-License-Identifier: Apache-2.0
-- Figures of the gallery's pages, which have device, date, commit and protocol: cold L2, span in us. pull-requests.svg is
-- drawn from it by `moegate report reports/gallery/pull-requests.sql --chart reports/gallery/pull-requests.svg`, with
-- any store. The test pages.gallery compares them.
WITH published ("pull request", "case", role, variant, "before us", us, "speed-up", "from", "to", page) AS (
  VALUES
-- measured
  ('ROCm/aiter 3526', 'deepseek-r1, 64 tokens', 'its idea', 'fused_one_block', 10.89, 195.5, 0.05568, 0.05555, 0.05581, 'pr-aiter-3526.md'),
  ('ROCm/aiter 3526', 'deepseek-r1, 64 tokens', 'best here', 'fused_cluster', 10.89, 4.34, 2.511, 2.482, 2.54, 'pr-aiter-3526.md'),
  ('aphrodite-engine 1603', 'deepseek-r1-tp8, 1 token', 'its idea', 'split_k8', 31.32, 16.39, 1.911, 1.898, 1.923, 'pr-aphrodite-1603.md'),
  ('aphrodite-engine 1603', 'deepseek-r1-tp8, 1 token', 'best here', 'swap_ab_split_k', 31.32, 13.32, 2.352, 2.332, 2.373, 'pr-aphrodite-1603.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b-fc1, 1 token', 'its idea', 'split_k2_fp32_acc', 17.76, 18.16, 0.9777, 0.9734, 0.9819, 'pr-onnxruntime-29167.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b-fc1, 1 token', 'best here', 'stream_imma', 17.76, 13.88, 1.279, 1.266, 1.293, 'pr-onnxruntime-29167.md'),
  ('SGLang 10567', 'deepseek-r1-tp8-shared-prefill-down, 8192 tokens', 'its idea', 'tma_down', 1226, 935.2, 1.311, 1.305, 1.318, 'pr-sglang-10567.md'),
  ('SGLang 10567', 'deepseek-r1-tp8-shared-prefill-down, 8192 tokens', 'best here', 'tma_down', 1226, 935.2, 1.311, 1.305, 1.318, 'pr-sglang-10567.md'),
  ('TensorRT-LLM 12686', 'deepseek-r1-tp8, 384 tokens', 'its idea', 'alpha_per_expert', 438.6, 377.8, 1.161, 1.101, 1.224, 'pr-tensorrt-llm-12686.md'),
  ('TensorRT-LLM 12686', 'deepseek-r1-tp8, 384 tokens', 'best here', 'sparse_rows', 438.6, 192.1, 2.283, 2.255, 2.311, 'pr-tensorrt-llm-12686.md')
-- end
)
SELECT * FROM published
