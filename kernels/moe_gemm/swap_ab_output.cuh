// SPDX-License-Identifier: Apache-2.0
// How swap_ab's sums leave the registers: to the rows of the output, or first to the other blocks
// of a cluster that have parts of the same sums.
#pragma once

#include "kernels/moe_gemm/swap_ab_tiles.cuh"

namespace moegate::gemm {

/// Calls f(row, column of the tile, sum) for the sums of rows [First, First + Rows) that the thread
/// holds.
template <int First, int Rows, class F, int N>
__device__ void for_sums(const float (&sums)[N], F f) {
  const int lane = threadIdx.x % 32, column = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = First / 2; i < (First + Rows) / 2; ++i)
    f(i / 4 * 8 + lane % 4 * 2 + i % 2, column + i / 2 % 2 * 8, sums[i]);
}

__device__ inline void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

/// Before the sums are ready. Two sets in turn: of the last tile's rows some may still be written.
template <int Tokens>
__device__ void read_rows(const MoeGemmArgs& args, int block, OutputRows<Tokens>& rows) {
  for (int i = threadIdx.x; i < Tokens; i += kConsumers) {
    const int id = __ldg(args.sorted_token_ids + block * Tokens + i);
    rows.id[i] = id;
    rows.weight[i] = args.routing_weights && id < args.shape.rows() ? args.routing_weights[id] : 1;
  }
}

/// Through shared memory, so that every row is written in pieces of 16 bytes next to each other.
template <int Tokens, int First = 0>
__device__ void write_tile(const MoeGemmArgs& args, const Tile& tile,
                           const OutputRows<Tokens>& rows, const float (&sums)[Tokens / 2],
                           uint16_t* staged) {
  using C = Config<Tokens>;
  constexpr int kPieces = kTileColumns / 8;
  sync_consumers();  // the rows before are written, and where these go to is there
  for_sums<First, C::kStagedRows>(sums, [&](int row, int column, float sum) {
    staged[(row - First) * C::kPitch + column] = float_to_bf16(sum * rows.weight[row]);
  });
  sync_consumers();
  for (int i = threadIdx.x; i < C::kStagedRows * kPieces; i += kConsumers) {
    const int row = i / kPieces, id = rows.id[First + row], column = i % kPieces * 8;
    if (id >= args.shape.rows() || tile.column + column >= args.shape.n) continue;
    auto* to = args.out + int64_t{id} * args.shape.n + tile.column + column;
    *reinterpret_cast<uint4*>(to) =
        *reinterpret_cast<const uint4*>(staged + row * C::kPitch + column);
  }
  if constexpr (First + C::kStagedRows < Tokens)
    write_tile<Tokens, First + C::kStagedRows>(args, tile, rows, sums, staged);
}

/// Every block of the cluster has sums over its part of K; each adds up a share of the columns.
/// Its only tile, so that the stages are free. Producers take part in both cluster barriers.
template <int Tokens>
__device__ void write_cluster(const MoeGemmArgs& args, const Tile& tile,
                              const OutputRows<Tokens>& rows, const float (&sums)[Tokens / 2],
                              float* part, const Tiles& tiles) {
  constexpr int kPitch = kTileColumns + 4;
  sync_consumers();
  for_sums<0, Tokens>(sums,
                      [&](int row, int column, float sum) { part[row * kPitch + column] = sum; });
  cluster_sync();
  const int columns = kTileColumns / tiles.splits;
  for (int i = threadIdx.x; i < Tokens * columns; i += kConsumers) {
    const int row = i / columns, column = tiles.rank * columns + i % columns;
    if (rows.id[row] >= args.shape.rows() || tile.column + column >= args.shape.n) continue;
    float sum = 0;
    for (int other = 0; other < tiles.splits; ++other)
      sum += load_from_block(shared_address(part + row * kPitch + column), other);
    args.out[int64_t{rows.id[row]} * args.shape.n + tile.column + column] =
        float_to_bf16(sum * rows.weight[row]);
  }
  cluster_sync();  // a block's memory stays while others read it
}

}  // namespace moegate::gemm
