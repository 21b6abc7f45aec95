// SPDX-License-Identifier: Apache-2.0
// moe_sum with a thread per token and eight columns: 16-byte loads of up to eight rows under way at
// once, so one round trip to memory for k <= 8, and blocks over columns, too, so that one token has
// work for several SMs. Where that makes too few blocks to fill the GPU (decode), a thread has two
// columns: four times the blocks, each as soon done. The order of additions is that of
// sum_per_token: their outputs agree bit for bit.
//
// Floor: y once from memory or L2; at decode the launch and one round trip. On an H200, H = 7168, k
// = 8, cold: 1.6 us at T = 1, 2.6 at 32, 28.7 at 1024 (sum_per_token: 7.0, 41.6 at the last two),
// which reads 4.1 TB/s. Two columns a thread: 1.10x at T = 1 to 4, 1.03x at 8, equal from 16 on; k
// = 9: 1.17x at 1, 1.05x at 32 (2026-11-23, commit 2f0f7b8; reports/gallery/nvidia-h200-why.md).
#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/moe_sum/launches.h"

namespace moegate::moe_sum {
namespace {

using namespace cuda;

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
    return {pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
            pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7])};
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
    return pack_bf16(values[0], values[1]);
  }
};

/// A token's rows of y, from a column on: next to each other, or each at its place.
struct InOrder {
  const uint16_t* first;
  int hidden;
  __device__ InOrder(const MoeSumArgs& args, int64_t token, int column)
      : first(args.y + token * args.shape.topk * args.shape.hidden + column),
        hidden(args.shape.hidden) {}
  __device__ const uint16_t* row(int j) const { return first + int64_t{j} * hidden; }
};
struct AtPlaces {
  const uint16_t* y;
  const int32_t* places;  // of the token's rows
  int hidden;
  __device__ AtPlaces(const MoeSumArgs& args, int64_t token, int column, const int32_t* of_rows)
      : y(args.y + column), places(of_rows + token * args.shape.topk), hidden(args.shape.hidden) {}
  __device__ const uint16_t* row(int j) const { return y + int64_t{__ldg(places + j)} * hidden; }
};

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

/// `chunks`: blocks per token.
template <int columns>
__global__ void __launch_bounds__(kThreads)
    sum_vectorised_kernel(const __grid_constant__ MoeSumArgs args, int chunks) {
  sum_columns<columns, InOrder>(args, chunks);
}

/// As many blocks of it fit an SM as of the other.
template <int columns>
__global__ void __launch_bounds__(kThreads, 9)
    sum_at_places_kernel(const __grid_constant__ MoeSumArgs args, int chunks,
                         const int32_t* places) {
  wait_for_dependency();
  sum_columns<columns, AtPlaces>(args, chunks, places);
}

int chunks_of(const MoeSumArgs& args, int columns) {
  const int chunk = kThreads * columns;
  return (args.shape.hidden + chunk - 1) / chunk;
}

/// `places` null: rows are in order.
template <int columns>
void launch_columns(const MoeSumArgs& args, const int32_t* places, const Launch& where) {
  const int chunks = chunks_of(args, columns);
  const auto blocks = static_cast<unsigned>(args.shape.tokens * chunks);
  if (places) {
    launch_dependent(sum_at_places_kernel<columns>, blocks, kThreads, where.stream, args, chunks,
                     places);
  } else {
    sum_vectorised_kernel<columns><<<blocks, kThreads, 0, stream_of(where)>>>(args, chunks);
    check_launch("sum_vectorised_kernel");
  }
}

void launch(const MoeSumArgs& args, const int32_t* places, const Launch& where) {
  const int wide_blocks = args.shape.tokens * chunks_of(args, kWide);
  const bool few = wide_blocks < kFullSm * where.device.processors;
  few ? launch_columns<kNarrow>(args, places, where) : launch_columns<kWide>(args, places, where);
}

}  // namespace

void launch_vectorised(const MoeSumArgs& args, const Launch& where) {
  launch(args, nullptr, where);
}
void launch_at_places(const MoeSumArgs& args, const int32_t* places, const Launch& where) {
  launch(args, places, where);
}

namespace {

std::string unsupported(const Case& c, const DeviceFacts&) {
  const int hidden = MoeSumShape::of(c).hidden;
  return hidden % 8 == 0 ? "" : fmt::format("H = {} is not a multiple of 8", hidden);
}

const Kernel<MoeSum> kernel({
    .name = "sum_vectorised",
    .backend = Backend::cuda,
    .help = "a thread per token and 8 columns, all k rows under way at once",
    .launch = [](MoeSum& problem,
                 const Launch& where) { launch_vectorised(problem.args(), where); },
    .unsupported = unsupported,
});

}  // namespace
}  // namespace moegate::moe_sum
