-- title: Five pull requests on one GPU: speed-up over the kernel before, with 95 % intervals; more is better
-- SPDX-License-Identifier: Apache-2.0
-- Figures of the gallery's pages, which have device, date, commit and protocol: cold L2, span in us. pull-requests.svg is
-- drawn from it by `moegate report reports/gallery/pull-requests.sql --chart reports/gallery/pull-requests.svg`, with
-- any store. The test pages.gallery compares them.
WITH published ("pull request", "case", role, variant, "before us", us, "speed-up", "from", "to", page) AS (
  VALUES
-- measured
  ('ROCm/aiter 3526', 'deepseek-r1, 64 tokens', 'its idea', 'fused_one_block', 10.87, 194.8, 0.05576, 0.05558, 0.05595, 'pr-aiter-3526.md'),
  ('ROCm/aiter 3526', 'deepseek-r1, 64 tokens', 'best here', 'fused_cluster', 10.87, 4.33, 2.509, 2.482, 2.536, 'pr-aiter-3526.md'),
  ('aphrodite-engine 1603', 'deepseek-r1-tp8, 1 token', 'its idea', 'split_k8', 31.32, 16.4, 1.91, 1.889, 1.93, 'pr-aphrodite-1603.md'),
  ('aphrodite-engine 1603', 'deepseek-r1-tp8, 1 token', 'best here', 'swap_ab_split_k', 31.32, 13.25, 2.364, 2.321, 2.408, 'pr-aphrodite-1603.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b-fc1, 1 token', 'its idea', 'split_k2_fp32_acc', 17.77, 18.14, 0.9793, 0.9747, 0.984, 'pr-onnxruntime-29167.md'),
  ('ONNX Runtime 29167', 'gpt-oss-20b-fc1, 1 token', 'best here', 'stream_imma', 17.77, 13.77, 1.29, 1.28, 1.301, 'pr-onnxruntime-29167.md'),
  ('SGLang 10567', 'deepseek-r1-tp8-shared-prefill-down, 8192 tokens', 'its idea', 'tma_down', 1224, 931.9, 1.314, 1.306, 1.321, 'pr-sglang-10567.md'),
  ('SGLang 10567', 'deepseek-r1-tp8-shared-prefill-down, 8192 tokens', 'best here', 'tma_down', 1224, 931.9, 1.314, 1.306, 1.321, 'pr-sglang-10567.md'),
  ('TensorRT-LLM 12686', 'deepseek-r1-tp8, 384 tokens', 'its idea', 'alpha_per_expert', 434.7, 372.1, 1.168, 1.14, 1.197, 'pr-tensorrt-llm-12686.md'),
  ('TensorRT-LLM 12686', 'deepseek-r1-tp8, 384 tokens', 'best here', 'sparse_rows', 434.7, 191.8, 2.266, 2.22, 2.313, 'pr-tensorrt-llm-12686.md')
-- end
)
SELECT * FROM published
