// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 in sorted order as prefill's output: rows of a tile are neighbours, and leave shared
// memory as tiles of the copy engine, 64 columns of half a block at a time. Where rows of padding
// follow, eight rows at a time, so that few of them are written.
#pragma once

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

struct SortedRows {
  static constexpr int kTileBytes = kHalfTokens * 128;  // 64 columns, with the 128-byte swizzle
  static constexpr int kFewRows = 8;
  static constexpr int kStagedBytes = kColumns / 64 * kTileBytes;
  static constexpr int kStages = 3;  // what the staged output leaves room for
  static constexpr bool kGateWithUp = false, kRowsFirst = false;

  CUtensorMap half_blocks, few_rows;  // of out [capacity, N], in tiles of 64 columns

  explicit SortedRows(const MoeGemmArgs& args)
      : half_blocks(matrix_map(args.out, args.shape.capacity(), args.shape.n * 2, kHalfTokens)),
        few_rows(matrix_map(args.out, args.shape.capacity(), args.shape.n * 2, kFewRows)) {}

  __device__ void stage(const MoeGemmShape&, const Place&, const Sums& sums,
                        const float (&weights)[2], uint32_t staged) const {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
#pragma unroll
      for (int j = 0; j < kSums / 8; ++j) {
        const float* s = sums[p] + j * 8;
        const int tile = p * 2 + j / 4, piece = j % 4 * 2 + lane / 16;
        fp8::store_matrices(staged + tile * kTileBytes + row * 128 + ((piece ^ row % 8) * 16),
                            pack_bf16(s[0] * weights[0], s[1] * weights[0]),
                            pack_bf16(s[2] * weights[1], s[3] * weights[1]),
                            pack_bf16(s[4] * weights[0], s[5] * weights[0]),
                            pack_bf16(s[6] * weights[1], s[7] * weights[1]));
      }
    }
  }

  __device__ void start(const MoeGemmShape& shape, const Place& place, int half,
                        const int (&ids)[2], uint32_t staged) const {
    const int lane = threadIdx.x % 32, tile = lane % 4, few = lane / 4;
    const int rows = __popc(__ballot_sync(~0u, ids[0] < shape.rows())) +
                     __popc(__ballot_sync(~0u, ids[1] < shape.rows()));
    const int column = (place.column + tile * 64) * 2;  // in bytes
    const int row = place.row + half * kHalfTokens + few * kFewRows;
    if (column >= shape.n * 2) return;
    if (rows == kHalfTokens) {
      if (few == 0) write_tile(&half_blocks, column, row, staged + tile * kTileBytes);
    } else if (few * kFewRows < rows) {
      write_tile(&few_rows, column, row, staged + tile * kTileBytes + few * kFewRows * 128);
    }
  }
};

}  // namespace moegate::moe_gemm::prefill
