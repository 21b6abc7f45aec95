// SPDX-License-Identifier: Apache-2.0
// moe_sum on the CPU as its definition reads: tokens in parallel, each column's k values in turn.
// The operator's yardstick.
#include "kernels/moe_sum/host_sum.h"

namespace moegate::moe_sum {

void run_per_token(const MoeSumArgs& args) {
  const MoeSumShape& shape = args.shape;
#pragma omp parallel for schedule(static)
  for (int t = 0; t < shape.tokens; ++t) {
    const uint16_t* rows = args.y + int64_t{t} * shape.topk * shape.hidden;
    for (int i = 0; i < shape.hidden; ++i) {
      float sum = 0;
      for (int j = 0; j < shape.topk; ++j)
        sum += bf16_to_float(rows[int64_t{j} * shape.hidden + i]);
      args.out[int64_t{t} * shape.hidden + i] = float_to_bf16(shape.scale * sum);
    }
  }
}

namespace {

const Kernel<MoeSum> kernel({
    .name = "per_token",
    .backend = Backend::host,
    .help = "tokens in parallel, the k values of a column in turn",
    .launch = [](MoeSum& problem, const Launch&) { run_per_token(problem.args()); },
});

}  // namespace
}  // namespace moegate::moe_sum
