// SPDX-License-Identifier: Apache-2.0
// What follows the sums over all of K before they leave: scale factors of channels or tensors, then
// a bias. Every warp reads what its columns need, which the other warps find in L1.
#pragma once

#include "kernels/moe_gemm/wide_tiles/tiles.cuh"

namespace moegate::moe_gemm::wide_tiles {

/// Of an even column and the next, where N is a multiple of 8.
__device__ inline float2 factors_of(const MoeGemmArgs& args, int expert, int column) {
  const float* at = args.weight_factor(expert, column);
  if (args.shape.scaled_by == ScaledBy::channel) return __ldg(reinterpret_cast<const float2*>(at));
  const float of_both = __ldg(at);
  return {of_both, of_both};
}
__device__ inline float2 biases_of(const BiasedArgs& args, int expert, int column) {
  const uint32_t both = __ldg(reinterpret_cast<const uint32_t*>(args.bias_of(expert, column)));
  return {__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000)};
}

/// Columns' factors and biases come to a tile's sums; their rows' factors, too, where a bias
/// follows. Else the factor of row l % 16 is returned, which the output is still to be multiplied
/// by.
template <class C>
__device__ float finish(const MoeGemmArgs& args, const Job<C>& job, const Part<C>& part,
                        Sums<C>& sums) {
  const int lane = threadIdx.x % 32, last = args.shape.n - 2;
  // Of rows of padding and beyond the last column: any, nothing is written.
  float of_row = 1, of_rows[2] = {1, 1};
  if constexpr (C::kOnce) of_row = __ldg(args.x_factor(min(job.id, args.shape.rows() - 1)));
  if constexpr (C::kOnce && C::kBiased) {
#pragma unroll
    for (int i = 0; i < 2; ++i) of_rows[i] = __shfl_sync(~0u, of_row, lane / 4 + i * 8);
    of_row = 1;
  }
#pragma unroll
  for (int p = 0; p < C::kProducts; ++p) {
    const int first =
        job.tile.column + (part.first_product + p) * C::kProductColumns + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < C::kProductColumns / 8; ++j) {
      const int column = min(first + j * 8, last);
      float* s = sums[p] + j * 4;
      if constexpr (C::kOnce) {
        const float2 factors = factors_of(args, job.tile.expert, column);
#pragma unroll
        for (int i = 0; i < 4; ++i) s[i] *= i % 2 == 0 ? factors.x : factors.y;
      }
      if constexpr (C::kBiased) {
        const float2 biases = biases_of(with_bias(args), job.tile.expert, column);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          s[i] = s[i] * of_rows[i / 2] + (i % 2 == 0 ? biases.x : biases.y);
      }
    }
  }
  return of_row;
}

}  // namespace moegate::moe_gemm::wide_tiles
