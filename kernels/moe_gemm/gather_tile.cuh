// SPDX-License-Identifier: Apache-2.0
// One tile of a grouped GEMM in the structure of the public Triton fused-MoE kernel: BM rows
// gathered by sorted id, 128 columns, a ring of slices of K (128 bytes wide) filled by asynchronous
// copies, mma.sync, and after each slice sums += products * row's scale factor * column's, all in
// fp32. What the kernels around it differ in: which slices a tile takes, how the factors of weights
// are read, and what becomes of the sums.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/gather_operands.cuh"

namespace moegate::gemm::gather {

/// What becomes of a tile's sums: the output, or a part that is added to it in bf16.
enum class Result { stored, added };

/// Tiles in the grouped order: within `group` blocks of rows the block is fastest, so that blocks
/// of one expert meet at the same weights.
struct TileOrder {
  int blocks, column_tiles, group;

  int tiles() const { return blocks * column_tiles; }
  __device__ Place place(int index) const {
    const int in_group = group * column_tiles, first = index / in_group * group;
    const int size = min(group, blocks - first), rest = index % in_group;
    return {first + rest % size, rest / size * kTileColumns};
  }
};

/// Groups of one block up to 16 tokens, of 32 beyond: what vLLM takes for block-scaled fp8 where it
/// has no tuned configuration.
inline TileOrder tile_order(const MoeGemmShape& shape) {
  return {static_cast<int>((shape.capacity() + shape.block - 1) / shape.block),
          (shape.n + kTileColumns - 1) / kTileColumns, shape.tokens <= 16 ? 1 : 32};
}

/// The sums of a tile over its slices of K. All threads have left the stages when it returns.
template <int Rows, DType kDtype, WeightScale kWeightScale>
__device__ void sum_products(const MoeGemmArgs& args, const Place& place, const int* ids,
                             uint32_t stages, Sums<Rows>& sums) {
  using T = Tile<Rows>;
  const SliceCopies<Rows> copies(args, place, ids);
  const int slices = slices_of<kDtype>(args.shape), step = place.slice_step;
  int to_copy = place.first_slice, into = 0, from = 0;
  const auto copy_next = [&] {
    if (to_copy < slices) copies.start(stages + into * T::kStageBytes, to_copy);
    commit_copies();  // also an empty group: waiting counts groups
    to_copy += step;
    into = into + 1 == T::kStages ? 0 : into + 1;
  };
#pragma unroll
  for (int i = 0; i < T::kStages - 1; ++i) copy_next();
  const int row = warp_row<Rows>(), column = warp_column<Rows>();
  ScaleFactors<Rows, kWeightScale> scales(args, place, ids);  // unused for bf16
  for (int slice = place.first_slice; slice < slices; slice += step) {
    wait_copies<T::kStages - 2>();
    __syncthreads();  // the slice is there, and nobody reads the stage that is filled next
    copy_next();
    const uint32_t x = stages + from * T::kStageBytes, weights = x + Rows * kSliceBytes;
    if constexpr (kDtype == DType::bf16) {
      multiply_slice<kDtype>(x, row, weights, column, sums);
    } else {
      scales.load(slice);  // a slice is a group
      Sums<Rows> products = {};
      multiply_slice<kDtype>(x, row, weights, column, products);
      scales.add_to(sums, products);
    }
    from = from + 1 == T::kStages ? 0 : from + 1;
  }
  __syncthreads();
}

/// Sums to bf16 in shared memory, times the routing weight, and from there to their rows of the
/// output in coalesced pieces; rows of padding and columns beyond N stay where they are.
template <int Rows, Result kResult>
__device__ void write_tile(const MoeGemmArgs& args, const Place& place, const int* ids,
                           const Sums<Rows>& sums, uint8_t* shared) {
  using T = Tile<Rows>;
  constexpr int kPitch = kTileColumns + 8;  // so that neighbouring rows begin in different banks
  auto* staged = reinterpret_cast<__nv_bfloat16*>(shared);
  const int lane = threadIdx.x % 32, rows = args.shape.rows();
#pragma unroll
  for (int r = 0; r < T::kRowParts * 2; ++r) {
    const int row = warp_row<Rows>() + r * 8 + lane / 4;
    const float weight =
        args.routing_weights && ids[row] < rows ? args.routing_weights[ids[row]] : 1;
    __nv_bfloat16* to = staged + row * kPitch + warp_column<Rows>() + lane % 4 * 2;
#pragma unroll
    for (int c = 0; c < T::kColumnParts; ++c) {
      const float* pair = &sums[r / 2][c][r % 2 * 2];
      *reinterpret_cast<__nv_bfloat162*>(to + c * 8) =
          __floats2bfloat162_rn(pair[0] * weight, pair[1] * weight);
    }
  }
  __syncthreads();
  constexpr int kColumns = kResult == Result::added ? 2 : 8;  // of a thread at once
  constexpr int kPerRow = kTileColumns / kColumns;
  for (int i = threadIdx.x; i < Rows * kPerRow; i += T::kThreads) {
    const int row = i / kPerRow, column = i % kPerRow * kColumns;
    if (ids[row] >= rows || place.first_column + column >= args.shape.n) continue;
    uint16_t* to = args.out + int64_t{ids[row]} * args.shape.n + place.first_column + column;
    const __nv_bfloat16* from = staged + row * kPitch + column;
    if constexpr (kResult == Result::added) {
      asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" ::"l"(to),
                   "r"(*reinterpret_cast<const uint32_t*>(from))
                   : "memory");
    } else {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    }
  }
}

/// The whole tile, by Tile<Rows>::kThreads threads and as much dynamic shared memory as it names.
template <int Rows, DType kDtype, WeightScale kWeightScale, Result kResult>
__device__ void compute_tile(const MoeGemmArgs& args, const Place& place) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ int ids[Rows];  // rows of the output; R for padding
  for (int i = threadIdx.x; i < Rows; i += Tile<Rows>::kThreads) {
    ids[i] = args.sorted_token_ids[place.block * Rows + i];
  }
  __syncthreads();
  Sums<Rows> sums = {};
  sum_products<Rows, kDtype, kWeightScale>(args, place, ids, shared_address(shared), sums);
  write_tile<Rows, kResult>(args, place, ids, sums, shared);
}

/// Calls f<BM, dtype>() for those of the shape.
template <class F>
void with_tile(const MoeGemmShape& shape, F f) {
  const auto with_rows = [&]<DType kDtype>() {
    switch (shape.block) {
      case 16:
        return f.template operator()<16, kDtype>();
      case 32:
        return f.template operator()<32, kDtype>();
      case 64:
        return f.template operator()<64, kDtype>();
      default:
        return f.template operator()<128, kDtype>();
    }
  };
  if (shape.scaled()) return with_rows.template operator()<DType::e4m3>();
  with_rows.template operator()<DType::bf16>();
}

/// Empty, or why these kernels do not run the case.
inline std::string gather_unsupported(const MoeGemmShape& shape) {
  if (shape.block != 16 && shape.block != 32 && shape.block != 64 && shape.block != 128) {
    return fmt::format("block = {} is not 16, 32, 64 or 128", shape.block);
  }
  if (shape.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", shape.n);
  if (shape.k % 8 != 0) return fmt::format("K = {} is not a multiple of 8", shape.k);
  return {};
}

}  // namespace moegate::gemm::gather
