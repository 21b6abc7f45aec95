// SPDX-License-Identifier: Apache-2.0
// The weighted sum of a token's rows by a thread per token and two columns, up to eight rows under
// way at once: a batch at decode has few columns, which so spread over many SMs.
#pragma once

#include "kernels/qmoe/gemv.cuh"
#include "kernels/qmoe_layer/steps.h"

namespace moegate::qmoe_layer {

constexpr int kSumThreads = 128;
/// Blocks for which an SM keeps registers: at 32 each, a block fits beside one of stream_imma.
constexpr int kSumBlocksPerSm = 16;

/// X: type of activations. `chunks`: blocks per token.
template <class X>
__device__ void sum_columns(const WeightedSumArgs& args, int chunks) {
  constexpr int kBatch = 8;
  const int token = blockIdx.x / chunks, first = token * args.topk;
  const int column = (blockIdx.x % chunks * kSumThreads + threadIdx.x) * 2;
  if (column >= args.hidden) return;
  float2 sum = {0, 0};
#pragma unroll 1
  for (int j = 0; j < args.topk; j += kBatch) {
    // No branches, so that no load waits for another but those of y for their row. Beyond the rows
    // the last one counts nothing.
    int rows[kBatch];
    float weights[kBatch];
    uint32_t y[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int i = first + min(j + b, args.topk - 1);
      // A lone token has all rows: it need not wait for their numbers.
      rows[b] = args.tokens == 1 ? i : args.rows[i];
      weights[b] = args.weights[i];
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const unsigned at = rows[b] * args.hidden + column;  // of at most 64 rows
      y[b] = *reinterpret_cast<const uint32_t*>(args.y + at);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const float weight = j + b < args.topk ? weights[b] : 0;
      const float2 value = qmoe::widen_pair<X>(y[b]);
      sum.x = fmaf(weight, value.x, sum.x);
      sum.y = fmaf(weight, value.y, sum.y);
    }
  }
  *reinterpret_cast<uint32_t*>(args.out + int64_t{token} * args.hidden + column) =
      qmoe::narrow<X>(sum.x) | uint32_t{qmoe::narrow<X>(sum.y)} << 16;
}

/// Calls launch.template operator()<X>(chunks, blocks).
template <class LaunchOf>
void with_sum_type(const WeightedSumArgs& args, const LaunchOf& launch) {
  const int chunks = (args.hidden + 2 * kSumThreads - 1) / (2 * kSumThreads);
  const auto blocks = static_cast<unsigned>(args.tokens * chunks);
  args.dtype == DType::f16 ? launch.template operator()<__half>(chunks, blocks)
                           : launch.template operator()<__nv_bfloat16>(chunks, blocks);
}

}  // namespace moegate::qmoe_layer
