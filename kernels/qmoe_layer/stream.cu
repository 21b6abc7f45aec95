// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (its products)
// The layer in four launches, each of which is set up while the one before runs: one block selects
// the experts, a warp per token, and sorts the rows; both products are stream_imma; the last adds a
// token's rows up. While the experts are selected, FC1 splits x into digits; while FC2 does so with
// what FC1 left, L2 fetches its first weights; the last launch's blocks wait beside FC2's, in the
// registers that these leave.
//
// Floor: the weights of both products at the speed of memory, and four waits for it: logits, rows,
// activations, y. Measured on an H100, gpt-oss-20b, one token: 24.9 us warm and 27.3 cold, where
// single_fp16_acc takes 34.2 and 36.7; Qwen3.6-35B-A3B 13.3 and 15.2 (20.1 and 22.0).
#include <algorithm>

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/qmoe/stream_pack.h"
#include "kernels/qmoe/stream_step.h"
#include "kernels/qmoe_layer/routed_rows.cuh"
#include "kernels/qmoe_layer/weighted_sum.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/select_topk.cuh"

namespace moegate::qmoe_layer {
namespace {

using namespace cuda;

constexpr int kMostWarps = 16;  // each has a token at a time

// Packed weights.
constexpr const char *kFc1 = "stream tiles fc1", *kFc2 = "stream tiles fc2";

/// N: scores per lane.
template <int N>
__global__ void __launch_bounds__(kMostWarps * 32)
    route_kernel(const __grid_constant__ topk_sort::TopkSortArgs args, const Routed routed) {
  __shared__ uint64_t slots[kMostWarps][topk_sort::kMaxTopk];
  __shared__ Choices choices;
  allow_dependents();
  const topk_sort::TopkSortShape& shape = args.shape;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int rows = shape.tokens * shape.topk;
  choices.leave_out(rows, thread);
  const topk_sort::LaneBias<N> none = {};
#pragma unroll 1
  for (int token = warp; token < shape.tokens; token += blockDim.x / 32) {
    const auto raw = topk_sort::load_row<N>(args, token, lane);
    const auto chosen = topk_sort::select_topk<false>(raw, none, shape, slots[warp]);
    const float weight = topk_sort::weight_of<false>(chosen, args, token);
    if (lane < shape.topk) choices.choose(token * shape.topk + lane, chosen.expert, weight);
  }
  __syncthreads();
  if (thread < rows) choices.place(thread, shape.topk, routed);
}

template <class X>
__global__ void __launch_bounds__(kSumThreads, kSumBlocksPerSm)
    early_sum_kernel(const __grid_constant__ WeightedSumArgs args, int chunks) {
  wait_for_dependency();
  sum_columns<X>(args, chunks);
}

void launch_route(const QmoeLayerArgs& args, const Buffers& buffers, const Launch& where) {
  const topk_sort::TopkSortArgs logits = routing(args);
  const int threads = std::max(kMostRows, std::min(args.shape.tokens(), kMostWarps) * 32);
  topk_sort::for_lanes(logits.shape, [&]<int N, bool kGrouped>() {
    if constexpr (!kGrouped) {
      route_kernel<N><<<1, threads, 0, stream_of(where)>>>(logits, buffers.routed);
    }
  });
  check_launch("route_kernel");
}

void launch(QmoeLayer& problem, const Launch& where) {
  const QmoeLayerArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.workspace());
  launch_route(args, buffers, where);
  qmoe::launch_stream_step(fc1(args, buffers), qmoe::stream_packed(problem, kFc1), where);
  qmoe::launch_stream_step(fc2(args, buffers), qmoe::stream_packed(problem, kFc2), where);
  const WeightedSumArgs last = sum(args, buffers);
  with_sum_type(last, [&]<class X>(int chunks, unsigned blocks) {
    launch_dependent(early_sum_kernel<X>, blocks, kSumThreads, where.stream, last, chunks);
  });
}

void prepare(QmoeLayer& problem, const Launch& where) {
  const QmoeLayerArgs args = problem.args();
  qmoe::stream_pack(problem, kFc1, args.fc1, stream_of(where));
  qmoe::stream_pack(problem, kFc2, args.fc2, stream_of(where));
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const auto shape = QmoeLayerShape::of(c);
  std::string why = topk_sort::warp_select_fault(shape.routing());
  if (why.empty()) why = qmoe::stream_unsupported(shape.fc1, device);
  return why.empty() ? qmoe::stream_unsupported(shape.fc2, device) : why;
}

const Kernel<QmoeLayer> kernel({
    .name = "stream",
    .backend = Backend::cuda,
    .help = "one launch that routes and sorts, both products as stream_imma, sum; set up early",
    .launch = launch,
    .prepare = prepare,
    .workspace = workspace,
    .unsupported = unsupported,
    .tolerance = QmoeLayer::kInDigits,
    .between = QmoeLayer::kRoundedInDigits,
});

}  // namespace
}  // namespace moegate::qmoe_layer
