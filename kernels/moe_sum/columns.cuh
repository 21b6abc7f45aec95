// SPDX-License-Identifier: Apache-2.0
// The sum of a token's rows by a thread per token and eight columns, or two. Rows lie in order for
// sum_vectorised.cu, each at its place for sum_at_places.cu.
#pragma once

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/moe_sum/launches.h"

namespace moegate::moe_sum {

constexpr int kThreads = 128;
constexpr int kWide = 8, kNarrow = 2;  // columns of a thread: 16 bytes, 4 bytes
constexpr int kBatch = 8;              // rows under way
/// Wide blocks per SM from which on narrow ones gain nothing.
constexpr int kFullSm = 2;

/// As many bf16 values as fill `Packed`.
template <int columns>
struct Columns;
template <>
struct Columns<kWide> {
  using Packed = uint4;
  static __device__ void widen(const uint4& packed, float (&values)[kWide]) {
    cuda::widen(packed, values);
  }
  static __device__ uint4 pack(const float (&values)[kWide]) {
    return {cuda::pack_bf16(values[0], values[1]), cuda::pack_bf16(values[2], values[3]),
            cuda::pack_bf16(values[4], values[5]), cuda::pack_bf16(values[6], values[7])};
  }
};
template <>
struct Columns<kNarrow> {
  using Packed = uint32_t;
  static __device__ void widen(uint32_t packed, float (&values)[kNarrow]) {
    values[0] = bits_float(packed << 16);
    values[1] = bits_float(packed & 0xffff0000u);
  }
  static __device__ uint32_t pack(const float (&values)[kNarrow]) {
    return cuda::pack_bf16(values[0], values[1]);
  }
};

/// A token's rows of y, next to each other.
struct InOrder {
  const uint16_t* first;
  int hidden;
  __device__ InOrder(const MoeSumArgs& args, int64_t token, int column)
      : first(args.y + token * args.shape.topk * args.shape.hidden + column),
        hidden(args.shape.hidden) {}
  __device__ const uint16_t* row(int j) const { return first + int64_t{j} * hidden; }
};

/// `Rows`: where a token's rows of y are, from a column on. `chunks`: blocks per token.
template <int columns, class Rows, class... More>
__device__ void sum_columns(const MoeSumArgs& args, int chunks, More... more) {
  using Packed = typename Columns<columns>::Packed;
  const MoeSumShape& shape = args.shape;
  const int64_t token = blockIdx.x / chunks;
  const int column = (blockIdx.x % chunks * kThreads + threadIdx.x) * columns;
  if (column >= shape.hidden) return;
  const Rows y(args, token, column, more...);
  float sums[columns] = {};
  for (int first = 0; first < shape.topk; first += kBatch) {
    Packed rows[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (first + j < shape.topk) {
        rows[j] = __ldcs(reinterpret_cast<const Packed*>(y.row(first + j)));
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (first + j >= shape.topk) break;
      float values[columns];
      Columns<columns>::widen(rows[j], values);
#pragma unroll
      for (int i = 0; i < columns; ++i) sums[i] += values[i];
    }
  }
#pragma unroll
  for (int i = 0; i < columns; ++i) sums[i] *= shape.scale;
  *reinterpret_cast<Packed*>(args.out + token * shape.hidden + column) =
      Columns<columns>::pack(sums);
}

inline int chunks_of(const MoeSumArgs& args, int columns) {
  const int chunk = kThreads * columns;
  return (args.shape.hidden + chunk - 1) / chunk;
}

/// Calls `launch` with the columns of a thread as a template argument, the chunks and the blocks.
template <class F>
void with_columns(const MoeSumArgs& args, const Launch& where, F&& launch) {
  const auto call = [&]<int columns>() {
    const int chunks = chunks_of(args, columns);
    launch.template operator()<columns>(chunks, static_cast<unsigned>(args.shape.tokens * chunks));
  };
  const int wide_blocks = args.shape.tokens * chunks_of(args, kWide);
  const bool few = wide_blocks < kFullSm * where.device.processors;
  few ? call.template operator()<kNarrow>() : call.template operator()<kWide>();
}

}  // namespace moegate::moe_sum
