// SPDX-License-Identifier: Apache-2.0
// The router's logits for few tokens with a block of 256 threads for each expert: its weights go
// from memory straight into registers, all at once, and stay there while the tokens' rows of x,
// which all blocks read, come by in pairs. A thread's products are one chain of fp32 FMAs; lanes,
// then warps are added in fixed order. Which thread has what of K follows from H alone, so that a
// token's bits do not depend on its batch.
//
// Floor: w from memory. Every block reads all of x from L2, so that it is for one token or a few:
// 3.0 us for 256 experts of 7168 at one, 5.6 at 8 (H100, 419b00d6), the quickest at one.
#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/streaming.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTokens = 8, kPair = 2;  // of a block
constexpr int kMostPieces = 8;         // of a thread

/// A thread's eight weights of a piece: bf16, or fp32 in two.
template <bool kWide>
struct Weights {
  uint4 words[kWide ? 2 : 1];

  __device__ void load(const void* row, int piece) {
    const auto* const from = static_cast<const uint4*>(row) + piece * (kWide ? 2 : 1);
#pragma unroll
    for (int i = 0; i < (kWide ? 2 : 1); ++i) words[i] = load_streaming(from + i);
  }
  __device__ void widen(float (&to)[kPiece]) const {
    if constexpr (kWide) {
      const uint32_t bits[] = {words[0].x, words[0].y, words[0].z, words[0].w,
                               words[1].x, words[1].y, words[1].z, words[1].w};
#pragma unroll
      for (int i = 0; i < kPiece; ++i) to[i] = bits_float(bits[i]);
    } else {
      cuda::widen(words[0], to);
    }
  }
};

/// A block's tokens are [first, first + tokens).
template <int kPieces, bool kWide>
struct Products {
  const RouterGemmArgs& args;
  int first, tokens;
  Weights<kWide> w[kPieces];

  __device__ static int piece_of(int i) { return static_cast<int>(threadIdx.x) + i * kThreads; }
  __device__ bool has(int i) const { return piece_of(i) < args.shape.hidden / kPiece; }
  __device__ void load_weights(int expert) {
    const int64_t at = int64_t{expert} * args.shape.hidden;
    const auto* const row = static_cast<const char*>(args.w) + at * (kWide ? 4 : 2);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (has(i)) w[i].load(row, piece_of(i));
    }
  }
  __device__ void load_pair(int pair, uint4 (&x)[kPair][kPieces]) const {
#pragma unroll
    for (int t = 0; t < kPair; ++t) {
      const int token = pair * kPair + t;
      const auto* const row =
          reinterpret_cast<const uint4*>(args.x + int64_t{first + token} * args.shape.hidden);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        if (token < tokens && has(i)) x[t][i] = __ldg(row + piece_of(i));
      }
    }
  }
  __device__ float sum(const uint4 (&x)[kPieces]) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (!has(i)) break;
      float weights[kPiece], values[kPiece];
      w[i].widen(weights);
      cuda::widen(x[i], values);
#pragma unroll
      for (int n = 0; n < kPiece; ++n) sum = fmaf(values[n], weights[n], sum);
    }
    return sum;
  }
};

__device__ float sum_of_warp(float sum) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffff, sum, apart);
  return sum;
}

/// Grid: experts, eights of tokens.
template <int kPieces, bool kWide>
__global__ void __launch_bounds__(kThreads, kPieces > 4 ? 1 : 2)
    expert_per_block_kernel(const __grid_constant__ RouterGemmArgs args) {
  __shared__ float warp_sums[kTokens][kWarps];
  const int expert = static_cast<int>(blockIdx.x), first = static_cast<int>(blockIdx.y) * kTokens;
  const int tokens = min(kTokens, args.shape.tokens - first);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  Products<kPieces, kWide> products{args, first, tokens};
  uint4 x[2][kPair][kPieces];
  products.load_weights(expert);
  products.load_pair(0, x[0]);
  const float bias = args.bias_of(expert);
#pragma unroll
  for (int pair = 0; pair < kTokens / kPair; ++pair) {
    if (pair * kPair >= tokens) break;
    if (pair + 1 < kTokens / kPair) products.load_pair(pair + 1, x[(pair + 1) % 2]);
#pragma unroll
    for (int t = 0; t < kPair; ++t) {
      if (pair * kPair + t >= tokens) break;
      const float sum = sum_of_warp(products.sum(x[pair % 2][t]));
      if (lane == 0) warp_sums[pair * kPair + t][warp] = sum;
    }
  }
  __syncthreads();
  if (thread >= tokens) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) sum += warp_sums[thread][i];
  write_float(args.shape.out, args.logits, int64_t{first + thread} * args.shape.experts + expert,
              sum + bias);
}

template <bool kWide>
void launch_weights(const RouterGemmArgs& args, const Launch& where) {
  const RouterGemmShape& shape = args.shape;
  const dim3 grid(static_cast<unsigned>(shape.experts),
                  static_cast<unsigned>((shape.tokens + kTokens - 1) / kTokens));
  const int pieces = (shape.hidden / kPiece + kThreads - 1) / kThreads;
  const auto call = [&]<int kPieces>() {
    expert_per_block_kernel<kPieces, kWide><<<grid, kThreads, 0, stream_of(where)>>>(args);
  };
  with_rows<1, 2, 4, kMostPieces>(pieces == 3 ? 4 : pieces, call);
  check_launch("expert_per_block_kernel");
}

const Kernel<RouterGemm> kernel({
    .name = "expert_per_block",
    .backend = Backend::cuda,
    .help = "a block per expert, weights in registers, all tokens' x from L2; FMAs in fp32",
    .launch =
        [](RouterGemm& problem, const Launch& where) {
          const RouterGemmArgs args = problem.args();
          args.shape.weights == DType::f32 ? launch_weights<true>(args, where)
                                           : launch_weights<false>(args, where);
        },
});

}  // namespace
}  // namespace moegate::router_gemm
