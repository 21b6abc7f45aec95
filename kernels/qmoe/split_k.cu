// SPDX-License-Identifier: Apache-2.0
// qmoe_fc1_swiglu with K split over blocks, as ONNX Runtime PR 29167 has it (S = 2), in two
// launches: the blocks of split z sum the K iterations z, z + S, ... (1024 of K each) into partials
// [S, R, N] of the accumulator's type; the second launch adds the splits up in float, then bias and
// SwiGLU. Where there are fewer iterations than splits, the single launch runs, as upstream.
//
// The idea: S times as many blocks, each with a shorter chain of loads. K = 2880 makes three
// iterations, so that two splits get two and one: the longer one bounds the gain. split_k3 probes
// the even division 1:1:1.
//
// Floor: that of the single launch, then 2*S*R*N accumulators written and read, and a second
// launch. Measured on an H200, gpt-oss-20b fc1, T = 1, cold: 15.87 + 1.60 us and 1.6 between the
// two launches with float (the PR's own, hot: 17.59 + 2.39), 12.80 + 1.60 with half accumulators:
// slower than the single launch (17.7, 13.1). Its 720 blocks of 4 warps fill the SMs already and
// instructions limit it, so that the partial pass saves a tenth at most, which the second launch
// costs twice over.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/qmoe/gemv.cuh"
#include "kernels/qmoe/launches.h"

namespace moegate::qmoe {
namespace {

using namespace cuda;

constexpr int kReduceThreads = 256;

__device__ inline void store_partial(__half* to, float sum) {
  *to = __float2half_rn(sum);
}
__device__ inline void store_partial(float* to, float sum) {
  *to = sum;
}

template <class Acc, bool Blocked, int Splits>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    partial_kernel(const __grid_constant__ QmoeArgs args, const Interleaved weights,
                   Acc* partials) {
  const float sum = tile_product<__half, Acc, Blocked, Splits>(args, weights);
  if (threadIdx.x >= kTileColumns) return;
  const int64_t row = int64_t{blockIdx.z} * gridDim.x + blockIdx.x;
  store_partial(&partials[row * args.shape.n + blockIdx.y * kTileColumns + threadIdx.x], sum);
}

/// Gate and up sums of one output, side by side in memory.
__device__ inline float2 load_pair(const __half* from) {
  return __half22float2(*reinterpret_cast<const __half2*>(from));
}
__device__ inline float2 load_pair(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}

/// A thread per output.
template <class Acc, int Splits>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_kernel(const __grid_constant__ QmoeArgs args, const Acc* partials) {
  const int row = blockIdx.x, rows = gridDim.x, n = args.shape.n;
  const int j = blockIdx.y * kReduceThreads + threadIdx.x;
  if (2 * j >= n) return;
  float gate = bias_of<__half>(args, row, 2 * j), up = bias_of<__half>(args, row, 2 * j + 1);
#pragma unroll
  for (int z = 0; z < Splits; ++z) {
    const float2 part = load_pair(partials + (int64_t{z} * rows + row) * n + 2 * j);
    gate += part.x;
    up += part.y;
  }
  args.out[int64_t{row} * n / 2 + j] = narrow<__half>(swiglu(args.shape, gate, up));
}

template <int Splits>
bool splits(const QmoeShape& shape) {
  return k_iterations(shape) >= Splits;
}

/// Of the partials; 0 where K is not split.
template <int Splits>
size_t partial_bytes(const QmoeShape& shape, Accumulator accumulator) {
  const size_t sums = size_t(Splits) * size_t(shape.rows()) * size_t(shape.n);
  return splits<Splits>(shape) ? sums * (accumulator == Accumulator::fp16 ? 2 : 4) : 0;
}

template <int Splits>
void launch_split(const QmoeArgs& args, const Interleaved& weights, void* workspace,
                  Accumulator accumulator, cudaStream_t stream) {
  const QmoeShape& shape = args.shape;
  if (!splits<Splits>(shape)) return launch_single(args, weights, accumulator, stream);
  const dim3 grid(shape.rows(), shape.n / kTileColumns, Splits);
  const dim3 reduce_grid(shape.rows(), (shape.outputs() + kReduceThreads - 1) / kReduceThreads);
  with_types(shape, accumulator, [&]<class Acc, bool Blocked>() {
    auto* partials = static_cast<Acc*>(workspace);
    partial_kernel<Acc, Blocked, Splits><<<grid, kThreads, 0, stream>>>(args, weights, partials);
    check_launch("partial_kernel");
    reduce_kernel<Acc, Splits><<<reduce_grid, kReduceThreads, 0, stream>>>(args, partials);
    check_launch("reduce_kernel");
  });
}

template <int Splits, Accumulator kAccumulator>
KernelSpec<QmoeFc1> spec() {
  constexpr bool kHalf = kAccumulator == Accumulator::fp16;
  return {
      .name = fmt::format("split_k{}_{}_acc", Splits, kHalf ? "fp16" : "fp32"),
      .backend = Backend::cuda,
      .help = fmt::format("K split over {} blocks, then a launch that adds them; sums in {}",
                          Splits, kHalf ? "fp16" : "fp32"),
      .launch =
          [](QmoeFc1& problem, const Launch& where) {
            launch_split<Splits>(problem.args(), interleaved(problem), problem.workspace(),
                                 kAccumulator, stream_of(where));
          },
      .prepare = [](QmoeFc1& problem, const Launch& where) { pack_interleaved(problem, where); },
      .workspace =
          [](const Case& c, const DeviceFacts&) {
            return partial_bytes<Splits>(QmoeFc1::shape_of(c), kAccumulator);
          },
      .unsupported =
          [](const Case& c, const DeviceFacts&) {
            return split_unsupported(QmoeFc1::shape_of(c), kAccumulator);
          },
      .path =
          [](const Case& c, const DeviceFacts&) {
            const bool split = splits<Splits>(QmoeFc1::shape_of(c));
            return std::string(split ? "split" : "fallback: single");
          },
      // As single_fp16_acc; each partial is rounded to half once more.
      .tolerance = kHalf ? 8.0 : 1.0,
      .between = kHalf ? kRoundedInHalf : 0};
}

const Kernel<QmoeFc1> two_fp16(spec<2, Accumulator::fp16>());
const Kernel<QmoeFc1> two_fp32(spec<2, Accumulator::fp32>());
const Kernel<QmoeFc1> three_fp16(spec<3, Accumulator::fp16>());
const Kernel<QmoeFc1> three_fp32(spec<3, Accumulator::fp32>());

}  // namespace

size_t split_k2_bytes(const QmoeShape& shape, Accumulator accumulator) {
  return partial_bytes<2>(shape, accumulator);
}

void launch_split_k2(const QmoeArgs& args, const Interleaved& weights, void* partials,
                     Accumulator accumulator, cudaStream_t stream) {
  launch_split<2>(args, weights, partials, accumulator, stream);
}

}  // namespace moegate::qmoe
