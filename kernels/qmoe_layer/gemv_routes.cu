// SPDX-License-Identifier: Apache-2.0
// The layer as ONNX Runtime runs it at decode, by the four routes that PR 29167 compares: softmax
// and top-k, a launch that sorts the rows, FC1 in one launch or split over K with a second one that
// adds up, FC2, and a sum of a token's rows. Five or six launches, one after the other.
//
// Rows of x are not copied into sorted order: FC1 reads one where it is.
//
// Floor: the weights of both products at the speed of memory, or of L2, and what the products' own
// headers say (single.cu, split_k.cu); then three more launches and the gaps between them. Measured
// on an H100, gpt-oss-20b, one token, warm, us: fp16 34.2, split 36.4; fp32 38.9, split 40.5.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/qmoe/launches.h"
#include "kernels/qmoe_layer/routed_rows.cuh"
#include "kernels/qmoe_layer/weighted_sum.cuh"
#include "kernels/topk_sort/launches.h"

namespace moegate::qmoe_layer {
namespace {

using namespace cuda;
using qmoe::Accumulator;

constexpr const char *kFc1 = "interleaved fc1", *kFc2 = "interleaved fc2";  // packed weights

__global__ void __launch_bounds__(kMostRows)
    sort_rows_kernel(const int32_t* ids, const float* weights, const Routed routed, int rows,
                     int topk) {
  __shared__ Choices choices;
  const int i = threadIdx.x;
  choices.leave_out(rows, i);
  if (i < rows) choices.choose(i, ids[i], weights[i]);
  __syncthreads();
  if (i < rows) choices.place(i, topk, routed);
}

template <class X>
__global__ void __launch_bounds__(kSumThreads)
    weighted_sum_kernel(const __grid_constant__ WeightedSumArgs args, int chunks) {
  sum_columns<X>(args, chunks);
}

enum class Fc1 { single, split_k2 };

template <Fc1 kRoute, Accumulator kAccumulator>
void launch(QmoeLayer& problem, const Launch& where) {
  const QmoeLayerArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.workspace());
  const cudaStream_t stream = stream_of(where);
  topk_sort::launch_topk(routing(args), {buffers.ids, buffers.weights, nullptr}, where);
  sort_rows_kernel<<<1, kMostRows, 0, stream>>>(buffers.ids, buffers.weights, buffers.routed,
                                                args.shape.rows(), args.shape.topk());
  check_launch("sort_rows_kernel");
  const qmoe::QmoeArgs up = fc1(args, buffers), down = fc2(args, buffers);
  const qmoe::Interleaved up_weights = interleaved(problem, kFc1, up.shape);
  if (kRoute == Fc1::split_k2) {
    launch_split_k2(up, up_weights, buffers.end, kAccumulator, stream);
  } else {
    launch_single(up, up_weights, kAccumulator, stream);
  }
  launch_single(down, interleaved(problem, kFc2, down.shape), kAccumulator, stream);
  with_sum_type(sum(args, buffers), [&]<class X>(int chunks, unsigned blocks) {
    weighted_sum_kernel<X><<<blocks, kSumThreads, 0, stream>>>(sum(args, buffers), chunks);
  });
  check_launch("weighted_sum_kernel");
}

void prepare(QmoeLayer& problem, const Launch& where) {
  const QmoeLayerArgs args = problem.args();
  pack_interleaved(problem, kFc1, args.fc1, where);
  pack_interleaved(problem, kFc2, args.fc2, where);
}

template <Fc1 kRoute>
std::string unsupported(const QmoeLayerShape& shape, Accumulator accumulator) {
  std::string why = topk_sort::warp_select_fault(shape.routing());
  if (why.empty()) {
    why = kRoute == Fc1::split_k2 ? qmoe::split_unsupported(shape.fc1, accumulator)
                                  : qmoe::gemv_unsupported(shape.fc1, accumulator);
  }
  return why.empty() ? qmoe::gemv_unsupported(shape.fc2, accumulator) : why;
}

template <Fc1 kRoute, Accumulator kAccumulator>
KernelSpec<QmoeLayer> spec() {
  constexpr bool kHalf = kAccumulator == Accumulator::fp16, kSplit = kRoute == Fc1::split_k2;
  return {.name = fmt::format("{}_{}_acc", kSplit ? "split_k2" : "single", kHalf ? "fp16" : "fp32"),
          .backend = Backend::cuda,
          .help = fmt::format("ONNX Runtime's launches: top-k, sort, FC1 {}, FC2, sum; sums in {}",
                              kSplit ? "split over K" : "in one", kHalf ? "fp16" : "fp32"),
          .launch = launch<kRoute, kAccumulator>,
          .prepare = prepare,
          .workspace =
              [](const Case& c, const DeviceFacts&) {
                const auto shape = QmoeLayerShape::of(c);
                return buffer_bytes(shape) +
                       (kSplit ? qmoe::split_k2_bytes(shape.fc1, kAccumulator) : size_t{0});
              },
          .unsupported =
              [](const Case& c, const DeviceFacts&) {
                return unsupported<kRoute>(QmoeLayerShape::of(c), kAccumulator);
              },
          .path = [](const Case& c, const DeviceFacts&) -> std::string {
            if (!kSplit) return "";
            const auto shape = QmoeLayerShape::of(c);
            return qmoe::split_k2_bytes(shape.fc1, kAccumulator) > 0 ? "split" : "fallback: single";
          },
          .tolerance = kHalf ? QmoeLayer::kSumsInHalf : 1.0,
          .between = kHalf ? QmoeLayer::kRoundedInHalf : 0};
}

const Kernel<QmoeLayer> single_fp16(spec<Fc1::single, Accumulator::fp16>());
const Kernel<QmoeLayer> single_fp32(spec<Fc1::single, Accumulator::fp32>());
const Kernel<QmoeLayer> split_fp16(spec<Fc1::split_k2, Accumulator::fp16>());
const Kernel<QmoeLayer> split_fp32(spec<Fc1::split_k2, Accumulator::fp32>());

}  // namespace
}  // namespace moegate::qmoe_layer
