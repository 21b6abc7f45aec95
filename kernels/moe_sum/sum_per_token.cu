// SPDX-License-Identifier: Apache-2.0
// moe_sum as the public layers' generic reduction: a block of at most 1024 threads per token, an
// element at a time, its k values one after the other, accumulated in fp32.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/moe_sum/launches.h"

namespace moegate::moe_sum {
namespace {

using namespace cuda;

constexpr int kMaxThreads = 1024;

__global__ void __launch_bounds__(kMaxThreads)
    sum_per_token_kernel(const __grid_constant__ MoeSumArgs args) {
  const MoeSumShape& shape = args.shape;
  const int64_t token = blockIdx.x;
  const uint16_t* rows = args.y + token * shape.topk * shape.hidden;
  for (int i = threadIdx.x; i < shape.hidden; i += blockDim.x) {
    float sum = 0;
    for (int j = 0; j < shape.topk; ++j) {
      sum += bf16_to_float(__ldg(rows + int64_t{j} * shape.hidden + i));
    }
    args.out[token * shape.hidden + i] = float_to_bf16(shape.scale * sum);
  }
}

}  // namespace

void launch_per_token(const MoeSumArgs& args, const Launch& where) {
  sum_per_token_kernel<<<args.shape.tokens, std::min(args.shape.hidden, kMaxThreads), 0,
                         stream_of(where)>>>(args);
  check_launch("sum_per_token_kernel");
}

namespace {

const Kernel<MoeSum> kernel({
    .name = "sum_per_token",
    .backend = Backend::cuda,
    .help = "a block per token, 2-byte loads, fp32",
    .launch = [](MoeSum& problem, const Launch& where) { launch_per_token(problem.args(), where); },
});

}  // namespace
}  // namespace moegate::moe_sum
