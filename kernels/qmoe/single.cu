// SPDX-License-Identifier: Apache-2.0
// The int4 products as ONNX Runtime runs them before PR 29167's change: one launch, a block per row
// and 32 columns, each over all of K; bias and SwiGLU at its end. A row reads its expert's weights
// by itself: what rows share, L2 has to deliver.
//
// Upstream accumulates fp16 activations in half unless told otherwise, bf16 always in float.
// single_fp16_acc does the former: a half sums 16 products per K iteration before threads are added
// up in float. That costs accuracy beside the rounding of the output: relative L2 error 1.1e-3 at K
// = 2880, 2.0e-3 with blocks of 32 at K = 4224, against 2.3e-4 with float. Its tolerance is 8 times
// the operator's.
//
// Floor: the weights of the experts that have rows, N*K/2 bytes each, at the speed of memory (or of
// L2 where they stay there). Measured on an H200, gpt-oss-20b fc1, T = 1 (33.3 MB, floor 7.4
// us): 13.1 us cold and 12.5 warm with half accumulators, 17.7 and 16.9 with float (the PR's own,
// hot: 13.93 and 21.42). The difference between the two is arithmetic, which is therefore the
// limit: 17 instructions per 8 codes against 25. At T = 8 rows of one expert read its weights
// again: 64.9 us.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/qmoe/gemv.cuh"
#include "kernels/qmoe/launches.h"

namespace moegate::qmoe {
namespace {

using namespace cuda;

template <class X, class Acc, bool Blocked, bool Swiglu>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    single_kernel(const __grid_constant__ QmoeArgs args, const Interleaved weights) {
  float sum = tile_product<X, Acc, Blocked, 1>(args, weights);
  if (threadIdx.x >= kTileColumns) return;
  const int row = blockIdx.x, n = blockIdx.y * kTileColumns + threadIdx.x;
  sum += bias_of<X>(args, row, n);
  if constexpr (Swiglu) {
    const float up = __shfl_down_sync(kAllLanes, sum, 1);
    if (n % 2 == 0) {
      args.out[(int64_t{row} * args.shape.n + n) / 2] = narrow<X>(swiglu(args.shape, sum, up));
    }
  } else {
    args.out[int64_t{row} * args.shape.n + n] = narrow<X>(sum);
  }
}

template <class P, Accumulator kAccumulator>
KernelSpec<P> spec() {
  constexpr bool kHalf = kAccumulator == Accumulator::fp16;
  return {.name = kHalf ? "single_fp16_acc" : "single_fp32_acc",
          .backend = Backend::cuda,
          .help = kHalf ? "a block per row and 32 columns, all of K; sums in fp16"
                        : "a block per row and 32 columns, all of K; sums in fp32",
          .launch =
              [](P& problem, const Launch& where) {
                launch_single(problem.args(), interleaved(problem), kAccumulator, stream_of(where));
              },
          .prepare = [](P& problem, const Launch& where) { pack_interleaved(problem, where); },
          .unsupported =
              [](const Case& c, const DeviceFacts&) {
                return gemv_unsupported(P::shape_of(c), kAccumulator);
              },
          .tolerance = kHalf ? 8.0 : 1.0,
          .between = kHalf ? kRoundedInHalf : 0};
}

const Kernel<QmoeFc1> fc1_fp16(spec<QmoeFc1, Accumulator::fp16>());
const Kernel<QmoeFc1> fc1_fp32(spec<QmoeFc1, Accumulator::fp32>());
const Kernel<QmoeFc2> fc2_fp16(spec<QmoeFc2, Accumulator::fp16>());
const Kernel<QmoeFc2> fc2_fp32(spec<QmoeFc2, Accumulator::fp32>());

}  // namespace

void launch_single(const QmoeArgs& args, const Interleaved& weights, Accumulator accumulator,
                   cudaStream_t stream) {
  const QmoeShape& shape = args.shape;
  const dim3 grid(shape.rows(), shape.n / kTileColumns);
  with_types(shape, accumulator, [&]<class Acc, bool Blocked>() {
    const auto launch = [&]<class X>(X) {
      if (shape.swiglu) {
        single_kernel<X, Acc, Blocked, true><<<grid, kThreads, 0, stream>>>(args, weights);
      } else {
        single_kernel<X, Acc, Blocked, false><<<grid, kThreads, 0, stream>>>(args, weights);
      }
    };
    if constexpr (std::is_same_v<Acc, float>) {
      if (shape.dtype == DType::bf16) return launch(__nv_bfloat16{});
    }
    launch(__half{});
  });
  check_launch("single_kernel");
}

}  // namespace moegate::qmoe
