// SPDX-License-Identifier: Apache-2.0
// moe_sum as vLLM's kernel of that name for k of 2 to 4: a block per token, an element at a time,
// the k values unrolled and added up in bf16, which rounds k - 1 times.
//
// The tolerance's factor of 2 lets an element be off by 0.02 + 0.008 of its value: the additions of
// values within +-1 are off by half a unit in the last place of sums within +-2, 3 and 4 each, 2^-8
// and twice 2^-7.
#include <cuda_bf16.h>

#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/moe_sum/moe_sum.h"

namespace moegate::moe_sum {
namespace {

using namespace cuda;

constexpr int kMaxThreads = 1024;

template <int TopK>
__global__ void __launch_bounds__(kMaxThreads)
    sum_bf16_acc_kernel(const __grid_constant__ MoeSumArgs args) {
  const int hidden = args.shape.hidden;
  const int64_t token = blockIdx.x;
  const auto* rows = reinterpret_cast<const __nv_bfloat16*>(args.y) + token * TopK * hidden;
  auto* out = reinterpret_cast<__nv_bfloat16*>(args.out) + token * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    __nv_bfloat16 sum = rows[i];
#pragma unroll
    for (int j = 1; j < TopK; ++j) sum = __hadd(sum, rows[int64_t{j} * hidden + i]);
    out[i] = sum;
  }
}

void launch(MoeSum& problem, const Launch& where) {
  const MoeSumArgs args = problem.args();
  const auto kernel = args.shape.topk == 2   ? sum_bf16_acc_kernel<2>
                      : args.shape.topk == 3 ? sum_bf16_acc_kernel<3>
                                             : sum_bf16_acc_kernel<4>;
  kernel<<<args.shape.tokens, std::min(args.shape.hidden, kMaxThreads), 0, stream_of(where)>>>(
      args);
  check_launch("sum_bf16_acc_kernel");
}

std::string unsupported(const Case& c, const DeviceFacts&) {
  const auto shape = MoeSumShape::of(c);
  if (shape.topk < 2 || shape.topk > 4) return fmt::format("topk = {} is not 2 to 4", shape.topk);
  if (shape.scale != 1) return fmt::format("scale = {}: it has none", shape.scale);
  return {};
}

const Kernel<MoeSum> kernel({
    .name = "sum_bf16_acc",
    .backend = Backend::cuda,
    .help = "vLLM's moe_sum for k of 2 to 4: a block per token, accumulated in bf16",
    .launch = launch,
    .unsupported = unsupported,
    .tolerance = 2,
    // Each of k - 1 sums is rounded, as large as the root of its share of the rows: 0.43 x 2^-8 x
    // sqrt((k - 1) / 2), k = 9 at most in the suites.
    .between = 4e-3,
});

}  // namespace
}  // namespace moegate::moe_sum
