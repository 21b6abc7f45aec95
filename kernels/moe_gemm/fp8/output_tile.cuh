// SPDX-License-Identifier: Apache-2.0
// How sums leave the registers of wgmma: as bf16 through shared memory by stmatrix, so that every
// row of the output is written in pieces of 16 bytes next to each other.
#pragma once

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/named_barriers.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::fp8 {

using namespace cuda;

constexpr int kStagedColumns = 64;
constexpr int kStagedRowBytes = kStagedColumns * 2;  // swizzled like a TMA tile

/// Where a routed row's columns go: to its row of out [R, N], or into its token's, out [T, N],
/// which was zeros before (moe_sum is then done; the sum of k rows is rounded k times, in any
/// order).
enum class Output { rows, token_sums };

template <Output kOutput>
__device__ void put_8_columns(const MoeGemmArgs& args, int id, int column, const uint4& values) {
  if constexpr (kOutput == Output::rows) {
    *reinterpret_cast<uint4*>(args.out + int64_t{id} * args.shape.n + column) = values;
  } else {
    uint16_t* to = args.out + int64_t{id / args.shape.topk} * args.shape.n + column;
    asm volatile("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(values.x), "r"(values.y), "r"(values.z), "r"(values.w)
                 : "memory");
  }
}

constexpr int kWarpStagedBytes = 16 * kStagedRowBytes;
/// Writes the columns from `column` of a warp's 16 rows (rows are the M of wgmma), times `weight`.
/// Lanes l and l + 16 have row l's id (of out; R or more: padding) and weight. `staged` is the
/// warp's own, of kWarpStagedBytes.
template <Output kOutput, int Sums>
__device__ void write_rows(const MoeGemmArgs& args, int column, int id, float weight,
                           const float (&sums)[Sums], uint8_t* staged) {
  const int lane = threadIdx.x % 32;
  const float first = __shfl_sync(~0u, weight, lane / 4);
  const float second = __shfl_sync(~0u, weight, lane / 4 + 8);
  const int to_row = lane % 16, to_piece = lane / 16;  // of 8 columns
  const uint32_t to = shared_address(staged) + to_row * kStagedRowBytes;
#pragma unroll
  for (int part = 0; part < Sums / 32; ++part) {
    __syncwarp();  // what was staged before has been read
#pragma unroll
    for (int j = 0; j < kStagedColumns / 16; ++j) {
      const float* s = sums + part * 32 + j * 8;
      store_matrices(to + (((j * 2 + to_piece) ^ to_row % 8) * 16),
                     pack_bf16(s[0] * first, s[1] * first), pack_bf16(s[2] * second, s[3] * second),
                     pack_bf16(s[4] * first, s[5] * first),
                     pack_bf16(s[6] * second, s[7] * second));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = i * 4 + lane / 8, piece = lane % 8, at = column + part * 64 + piece * 8;
      const int to_id = __shfl_sync(~0u, id, row);
      if (to_id >= args.shape.rows() || at >= args.shape.n) continue;
      put_8_columns<kOutput>(args, to_id, at,
                             *reinterpret_cast<const uint4*>(staged + row * kStagedRowBytes +
                                                             ((piece ^ row % 8) * 16)));
    }
  }
}

/// All 128 threads of a warpgroup.
__device__ inline void sync_warpgroup(int warpgroup) {
  sync_barrier<128>(kStagingBarrier + warpgroup);
}

constexpr int kWarpgroupStagedRows = 64;  // at a time
constexpr int kWarpgroupStagedBytes = kWarpgroupStagedRows * kStagedRowBytes;
/// Writes the 64 columns (the M of wgmma) from `column` of the rows `ids` (in shared memory; R or
/// more: padding). `staged` is the warpgroup's own, of kWarpgroupStagedBytes.
template <Output kOutput, int Tokens>
__device__ void write_columns(const MoeGemmArgs& args, int column, const int* ids,
                              const float (&sums)[Tokens / 2], uint8_t* staged) {
  constexpr int kRows = Tokens < kWarpgroupStagedRows ? Tokens : kWarpgroupStagedRows;
  const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  const int warp = thread / 32, lane = thread % 32;
  const int turned_row = lane / 16 * 8 + lane % 8, turned_piece = warp * 2 + lane / 8 % 2;
  const uint32_t to = shared_address(staged) + turned_row * kStagedRowBytes +
                      ((turned_piece ^ turned_row % 8) * 16);
#pragma unroll
  for (int first = 0; first < Tokens; first += kRows) {
    sync_warpgroup(warpgroup);  // what was staged before has been read
#pragma unroll
    for (int row = 0; row < kRows; row += 16) {
      const float* s = sums + (first + row) / 2;
      store_turned(to + row * kStagedRowBytes, pack_bf16(s[0], s[1]), pack_bf16(s[2], s[3]),
                   pack_bf16(s[4], s[5]), pack_bf16(s[6], s[7]));
    }
    sync_warpgroup(warpgroup);
#pragma unroll
    for (int i = thread; i < kRows * 8; i += 128) {
      const int row = i / 8, piece = i % 8, id = ids[first + row], at = column + piece * 8;
      if (id >= args.shape.rows() || at >= args.shape.n) continue;
      put_8_columns<kOutput>(args, id, at,
                             *reinterpret_cast<const uint4*>(staged + row * kStagedRowBytes +
                                                             ((piece ^ row % 8) * 16)));
    }
  }
}

}  // namespace moegate::moe_gemm::fp8
