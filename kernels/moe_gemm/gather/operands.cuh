// SPDX-License-Identifier: Apache-2.0
// How a tile of gathered rows and 128 columns is shared out among warps, and what a thread of it
// reads from global memory: its pieces of every slice of K, and the scale factors of its sums.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/moe_gemm/gather/fragments.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::gather {

using namespace cuda;

constexpr int kTileColumns = 128;    // BN
constexpr int kSwizzleBytes = 1024;  // the 128-byte swizzle repeats; stages begin at its multiples

/// How scale factors of weights reach the products: looked up by column (a thread's two neighbours
/// share a load) and multiplied with each sum after the row's factor, or one for the tile,
/// multiplied with the rows' factors first (SGLang PR 10567: BN does not exceed the group, so that
/// a tile has one), or once, with the sum over all of K (ScaledBy::channel, tensor).
enum class WeightScale { per_column, per_tile, once };

/// What depends on BM: warps along rows and columns, and stages of the ring. From 64 rows on
/// products are a warpgroup's, of 64 rows and all columns, of which a warp has 16 rows.
template <int Rows>
struct Tile {
  static constexpr bool kWarpgroups = Rows >= 64;
  static constexpr int kRowWarps = kWarpgroups ? Rows / 16 : 1;
  static constexpr int kColumnWarps = kWarpgroups ? 1 : 4;
  static constexpr int kThreads = 32 * kRowWarps * kColumnWarps;
  static constexpr int kStages = Rows <= 32 ? 4 : 3;
  static constexpr int kStageBytes = (Rows + kTileColumns) * kSliceBytes;
  static constexpr int kSharedBytes =
      kStages * kStageBytes + kSwizzleBytes;  // to begin at a multiple
  // Of a warp, in products of 16 rows and 8 columns.
  static constexpr int kRowParts = Rows / kRowWarps / 16;
  static constexpr int kColumnParts = kTileColumns / kColumnWarps / 8;
  // Of a thread's copies, each of one piece.
  static constexpr int kCopyRows = kThreads / kPieces;  // rows that all threads copy at once
  static constexpr int kXCopies = Rows / kCopyRows;
  static constexpr int kWeightCopies = kTileColumns / kCopyRows;
};

/// Lane l holds of rows l / 4 (elements 0, 1) and l / 4 + 8 (2, 3) the columns l % 4 * 2 and the
/// next.
template <int Rows>
using Sums = float[Tile<Rows>::kRowParts][Tile<Rows>::kColumnParts][4];

/// The same of int8.
template <int Rows>
using WholeSums = int[Tile<Rows>::kRowParts][Tile<Rows>::kColumnParts][4];

/// The tile's place, and the slices of K it takes: first, first + step, ...
struct Place {
  int block;         // of BM rows
  int first_column;  // of N
  int first_slice = 0, slice_step = 1;
};

/// Where the warp's rows and columns begin in the tile.
template <int Rows>
__device__ int warp_row() {
  return threadIdx.x / 32 % Tile<Rows>::kRowWarps * Tile<Rows>::kRowParts * 16;
}
template <int Rows>
__device__ int warp_column() {
  return threadIdx.x / 32 / Tile<Rows>::kRowWarps * Tile<Rows>::kColumnParts * 8;
}

/// Fills stages; a thread copies the same piece of some rows of x and weights every time, one slice
/// after the other. What a row begins at is computed once: from 64 rows on every instruction
/// between two products shows.
template <int Rows>
class SliceCopies {
 public:
  /// `ids`: the block's rows of the output, R for padding, which reads nothing.
  __device__ SliceCopies(const MoeGemmArgs& args, const Place& place, const int* ids)
      : row_bytes_(args.shape.k * (args.shape.dtype == DType::bf16 ? 2 : 1)) {
    const MoeGemmShape& shape = args.shape;
    const int row = threadIdx.x / kPieces, piece = threadIdx.x % kPieces;
    at_ = piece * kPieceBytes;
    to_ = piece_at(row, piece);
    const auto* x = static_cast<const uint8_t*>(args.x) + at_;
#pragma unroll
    for (int i = 0; i < T::kXCopies; ++i) {
      const int id = ids[row + i * T::kCopyRows];
      x_rows_[i] = id < shape.rows() ? x + int64_t{shape.source(id)} * row_bytes_ : nullptr;
    }
    weights_ = static_cast<const uint8_t*>(args.weights) +
               int64_t{args.expert_ids[place.block]} * shape.n * row_bytes_ + at_;
#pragma unroll
    for (int i = 0; i < T::kWeightCopies; ++i) {
      // Beyond N the last column is read again: its products are not written.
      weight_rows_[i] = min(place.first_column + row + i * T::kCopyRows, shape.n - 1) * row_bytes_;
    }
  }

  __device__ void start(uint32_t stage, int slice) const {
    const int slice_at = slice * kSliceBytes;
    const bool inside = slice_at + at_ < row_bytes_;
#pragma unroll
    for (int i = 0; i < T::kXCopies; ++i) {
      const bool there = inside && x_rows_[i];
      copy_async<kPieceBytes>(stage + to_ + i * kPassBytes,
                              there ? x_rows_[i] + slice_at : weights_, there);
    }
    const uint8_t* weights = weights_ + (inside ? slice_at : -at_);
#pragma unroll
    for (int i = 0; i < T::kWeightCopies; ++i) {
      copy_async<kPieceBytes>(stage + Rows * kSliceBytes + to_ + i * kPassBytes,
                              weights + weight_rows_[i], inside);
    }
  }

 private:
  using T = Tile<Rows>;
  static constexpr int kPassBytes = T::kCopyRows * kSliceBytes;

  const uint8_t *x_rows_[T::kXCopies], *weights_;
  int row_bytes_, at_;
  uint32_t to_, weight_rows_[T::kWeightCopies];
};

/// The scale factors of a thread's sums, read group by group.
template <int Rows, WeightScale kWeightScale>
class ScaleFactors {
 public:
  /// `source(row of the tile)` is the row of x that it reads, negative for padding.
  template <class Source>
  __device__ ScaleFactors(const MoeGemmArgs& args, const Place& place, Source source)
      : x_(args.x_scales) {
    const MoeGemmShape& shape = args.shape;
    const int lane = threadIdx.x % 32, groups = shape.k_groups();
    const int row = warp_row<Rows>() + lane / 4;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      x_rows_[i] = source(row + i * 8) * groups;
    }
    weights_ =
        args.weight_scales + int64_t{args.expert_ids[place.block]} * shape.n_groups() * groups;
    const int column = place.first_column + warp_column<Rows>();
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int own = kWeightScale == WeightScale::per_column ? column + i * 8 : place.first_column;
      columns_[i] = min(own, shape.n - 1) / kMoeGroup * groups;
    }
  }

  __device__ void load(int group) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      x_scales_[i] = x_rows_[i] < 0 ? 0 : __ldg(x_ + x_rows_[i] + group);
    }
#pragma unroll
    for (int i = 0; i < kColumns; ++i) weight_scales_[i] = __ldg(weights_ + columns_[i] + group);
    if constexpr (kWeightScale == WeightScale::per_tile) {
#pragma unroll
      for (float& scale : x_scales_) scale *= weight_scales_[0];
    }
  }

  __device__ void add_to(Sums<Rows>& sums, const Sums<Rows>& products) const {
#pragma unroll
    for (int r = 0; r < T::kRowParts; ++r) {
#pragma unroll
      for (int c = 0; c < T::kColumnParts; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float scaled = products[r][c][i] * x_scales_[r * 2 + i / 2];
          if constexpr (kWeightScale == WeightScale::per_tile) {
            sums[r][c][i] += scaled;
          } else {
            sums[r][c][i] += scaled * weight_scales_[c];
          }
        }
      }
    }
  }

 private:
  using T = Tile<Rows>;
  static constexpr int kRows = T::kRowParts * 2;
  static constexpr int kColumns = kWeightScale == WeightScale::per_tile ? 1 : T::kColumnParts;

  const float *x_, *weights_;
  int x_rows_[kRows], columns_[kColumns];
  float x_scales_[kRows], weight_scales_[kColumns];
};

/// None, until the sums are there. Products are added up in fp32 all the same: wgmma of e4m3 keeps
/// too few bits for all of K.
template <int Rows>
struct ScaleFactors<Rows, WeightScale::once> {
  template <class Source>
  __device__ ScaleFactors(const MoeGemmArgs&, const Place&, Source) {}
  __device__ void load(int) {}
  __device__ void add_to(Sums<Rows>& sums, const Sums<Rows>& products) const {
#pragma unroll
    for (int r = 0; r < Tile<Rows>::kRowParts; ++r) {
#pragma unroll
      for (int c = 0; c < Tile<Rows>::kColumnParts; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[r][c][i] += products[r][c][i];
      }
    }
  }
};

}  // namespace moegate::moe_gemm::gather
