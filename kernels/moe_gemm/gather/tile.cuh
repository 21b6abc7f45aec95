// SPDX-License-Identifier: Apache-2.0
// One tile of a grouped GEMM in the structure of the public Triton fused-MoE kernel: BM rows
// gathered by sorted id, 128 columns, a ring of slices of K (128 bytes wide) filled by asynchronous
// copies, products (mma.sync; on Hopper from 64 rows on wgmma, as Triton has it), and after each
// slice sums += products * row's scale factor * column's, all in fp32. What the kernels around it
// differ in: which slices a tile takes, how the factors of weights are read, and what becomes of
// the sums.
#pragma once

#include <cuda_bf16.h>

#include <type_traits>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/wgmma_s8.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/gather/operands.cuh"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::gather {

using namespace cuda;

/// What becomes of a tile's sums: rows of the output in token order or at their places in
/// sorted_token_ids, or parts that are added to rows in token order, in bf16.
enum class Result { stored, sorted, added };

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

/// A ring of slices that every thread fills with its pieces of gathered rows and of weights.
template <int Rows>
class GatheredSlices {
 public:
  __device__ GatheredSlices(const SliceCopies<Rows>& copies, const Place& place, int slices,
                            uint32_t stages)
      : copies_(copies),
        stages_(stages),
        slices_(slices),
        next_(place.first_slice),
        step_(place.slice_step) {}

  /// Starts the copies of the slice after the last one started.
  __device__ void start_next() {
    if (next_ < slices_) copies_.start(stages_ + into_ * T::kStageBytes, next_);
    commit_copies();  // also an empty group: waiting counts groups
    next_ += step_;
    into_ = into_ + 1 == T::kStages ? 0 : into_ + 1;
  }
  /// The stage with the next slice to multiply, rows before weights. All threads have left the
  /// stage that is filled next.
  __device__ uint32_t wait_next() {
    wait_copies<T::kStages - 2>();
    if constexpr (T::kWarpgroups && kHasWgmma) fence_for_products();
    __syncthreads();
    const uint32_t stage = stages_ + from_ * T::kStageBytes;
    from_ = from_ + 1 == T::kStages ? 0 : from_ + 1;
    return stage;
  }

 private:
  using T = Tile<Rows>;

  const SliceCopies<Rows> copies_;
  uint32_t stages_;
  int slices_, next_, step_, into_ = 0, from_ = 0;
};

/// sums += a slice's products, each with its scale factors where there are any. `between` is done
/// where it costs least.
template <int Rows, DType kDtype, WeightScale kWeightScale, class F>
__device__ void add_slice(uint32_t x, uint32_t weights, int slice,
                          ScaleFactors<Rows, kWeightScale>& scales, Sums<Rows>& sums, F between) {
  Sums<Rows> products = {};
  auto& into = kDtype == DType::bf16 ? sums : products;
  if constexpr (Tile<Rows>::kWarpgroups && kHasWgmma) {
    using Flat = float[kTileColumns / 2];
    start_group<kTileColumns, kDtype>(reinterpret_cast<Flat&>(into),
                                      operand(x + warpgroup() * 64 * kSliceBytes), operand(weights),
                                      kDtype == DType::bf16);
    between();
    if constexpr (kDtype != DType::bf16) scales.load(slice);  // a slice is a group
    wait_products();
  } else {
    between();
    if constexpr (kDtype != DType::bf16) scales.load(slice);
    multiply_slice<kDtype>(x, warp_row<Rows>(), weights, warp_column<Rows>(), into);
  }
  if constexpr (kDtype != DType::bf16) scales.add_to(sums, products);
}

/// The sums of a tile over its slices of K. All threads have left the stages when it returns.
/// `source` as in ScaleFactors.
template <int Rows, DType kDtype, WeightScale kWeightScale, class Ring, class Source>
__device__ void sum_products(const MoeGemmArgs& args, const Place& place, Ring& ring, Source source,
                             Sums<Rows>& sums) {
#pragma unroll
  for (int i = 0; i < Tile<Rows>::kStages - 1; ++i) ring.start_next();
  ScaleFactors<Rows, kWeightScale> scales(args, place, source);  // unused for bf16
  const int slices = slices_of<kDtype>(args.shape);
  for (int slice = place.first_slice; slice < slices; slice += place.slice_step) {
    const uint32_t x = ring.wait_next(), weights = x + Rows * kSliceBytes;
    add_slice<Rows, kDtype>(x, weights, slice, scales, sums, [&] { ring.start_next(); });
  }
  __syncthreads();
}

/// The same of int8: exact, so that the tensor cores keep the sums over all of K.
template <int Rows, class Ring>
__device__ void sum_whole_products(const MoeGemmArgs& args, const Place& place, Ring& ring,
                                   Sums<Rows>& sums) {
#pragma unroll
  for (int i = 0; i < Tile<Rows>::kStages - 1; ++i) ring.start_next();
  WholeSums<Rows> whole = {};
  const int slices = slices_of<DType::i8>(args.shape);
  for (int slice = place.first_slice; slice < slices; slice += place.slice_step) {
    const uint32_t x = ring.wait_next(), weights = x + Rows * kSliceBytes;
    if constexpr (Tile<Rows>::kWarpgroups && kHasWgmma) {
      using Flat = int[kTileColumns / 2];
      start_group<kTileColumns>(reinterpret_cast<Flat&>(whole),
                                operand(x + warpgroup() * 64 * kSliceBytes), operand(weights),
                                true);
      ring.start_next();
      wait_products();
    } else {
      ring.start_next();
      multiply_slice<DType::i8>(x, warp_row<Rows>(), weights, warp_column<Rows>(), whole);
    }
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < Tile<Rows>::kRowParts; ++r) {
#pragma unroll
    for (int c = 0; c < Tile<Rows>::kColumnParts; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[r][c][i] = static_cast<float>(whole[r][c][i]);
    }
  }
}

/// The sums times both factors that all of K shares.
template <int Rows>
__device__ void scale(const MoeGemmArgs& args, const Place& place, const int* ids,
                      Sums<Rows>& sums) {
  using T = Tile<Rows>;
  const int lane = threadIdx.x % 32, expert = args.expert_ids[place.block];
  float of_rows[T::kRowParts * 2];
#pragma unroll
  for (int r = 0; r < T::kRowParts * 2; ++r) {
    const int id = ids[warp_row<Rows>() + r * 8 + lane / 4];
    of_rows[r] = id < args.shape.rows() ? __ldg(args.x_factor(id)) : 0;
  }
#pragma unroll
  for (int c = 0; c < T::kColumnParts; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = place.first_column + warp_column<Rows>() + c * 8 + lane % 4 * 2 + i;
      const float of_column = __ldg(args.weight_factor(expert, min(column, args.shape.n - 1)));
#pragma unroll
      for (int r = 0; r < T::kRowParts * 2; ++r)
        sums[r / 2][c][r % 2 * 2 + i] *= of_rows[r] * of_column;
    }
  }
}

/// Every column's bias on top of its sums.
template <int Rows>
__device__ void add_bias(const BiasedArgs& args, const Place& place, Sums<Rows>& sums) {
  using T = Tile<Rows>;
  const int lane = threadIdx.x % 32, expert = args.expert_ids[place.block];
#pragma unroll
  for (int c = 0; c < T::kColumnParts; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = place.first_column + warp_column<Rows>() + c * 8 + lane % 4 * 2 + i;
      const float bias = bf16_to_float(__ldg(args.bias_of(expert, min(column, args.shape.n - 1))));
#pragma unroll
      for (int r = 0; r < T::kRowParts * 2; ++r) sums[r / 2][c][r % 2 * 2 + i] += bias;
    }
  }
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
    const int64_t out_row = kResult == Result::sorted ? place.block * Rows + row : ids[row];
    uint16_t* to = args.out + out_row * args.shape.n + place.first_column + column;
    const __nv_bfloat16* from = staged + row * kPitch + column;
    if constexpr (kResult == Result::added) {
#if __CUDA_ARCH__ >= 900
      asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" ::"l"(to),
                   "r"(*reinterpret_cast<const uint32_t*>(from))
                   : "memory");
#else
      atomicAdd(reinterpret_cast<__nv_bfloat162*>(to),
                *reinterpret_cast<const __nv_bfloat162*>(from));
#endif
    } else {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    }
  }
}

/// The first multiple of kSwizzleBytes in a block's dynamic shared memory.
__device__ inline uint8_t* at_swizzle(uint8_t* shared) {
  return shared + (kSwizzleBytes - shared_address(shared) % kSwizzleBytes) % kSwizzleBytes;
}

/// The whole tile, by Tile<Rows>::kThreads threads and as much dynamic shared memory as it names;
/// of BiasedArgs with the bias.
template <int Rows, DType kDtype, WeightScale kWeightScale, Result kResult, class Args>
__device__ void compute_tile(const Args& args, const Place& place) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ int ids[Rows];  // rows of the output; R for padding
  for (int i = threadIdx.x; i < Rows; i += Tile<Rows>::kThreads) {
    ids[i] = args.sorted_token_ids[place.block * Rows + i];
  }
  __syncthreads();
  const MoeGemmShape& shape = args.shape;
  uint8_t* stages = at_swizzle(shared);
  GatheredSlices<Rows> ring(SliceCopies<Rows>(args, place, ids), place, slices_of<kDtype>(shape),
                            shared_address(stages));
  const auto source = [&](int row) {
    return ids[row] < shape.rows() ? shape.source(ids[row]) : -1;
  };
  Sums<Rows> sums = {};
  if constexpr (kDtype == DType::i8) {
    sum_whole_products<Rows>(args, place, ring, sums);
  } else {
    sum_products<Rows, kDtype, kWeightScale>(args, place, ring, source, sums);
  }
  if constexpr (kWeightScale == WeightScale::once) scale<Rows>(args, place, ids, sums);
  if constexpr (std::is_same_v<Args, BiasedArgs>) add_bias<Rows>(args, place, sums);
  write_tile<Rows, kResult>(args, place, ids, sums, stages);
}

/// Calls f<BM, dtype>() for those of the shape; fp8 or bf16.
template <class F>
void with_tile(const MoeGemmShape& shape, F f) {
  with_rows<16, 32, 64, 128>(shape.block, [&]<int Rows>() {
    shape.scaled() ? f.template operator()<Rows, DType::e4m3>()
                   : f.template operator()<Rows, DType::bf16>();
  });
}

/// Empty, or why these kernels do not run the case; `any_epilogue`: WeightScale::once, the bias and
/// int8 are compiled.
inline std::string gather_unsupported(const MoeGemmShape& shape, bool any_epilogue = false) {
  if (shape.k % 8 != 0) return fmt::format("K = {} is not a multiple of 8", shape.k);
  return tiles::tile_unsupported(shape, any_epilogue, any_epilogue, any_epilogue);
}

}  // namespace moegate::moe_gemm::gather
