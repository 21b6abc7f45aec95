// SPDX-License-Identifier: Apache-2.0
// The router's logits on the CPU as their definition reads: for each of them one sum of all of K.
// The operator's yardstick.
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

template <class W>
float sum_of(const RouterGemmArgs& args, int64_t token, int64_t expert) {
  const uint16_t* x = args.x + token * args.shape.hidden;
  const W* w = static_cast<const W*>(args.w) + expert * args.shape.hidden;
  float sum = 0;
  for (int k = 0; k < args.shape.hidden; ++k) {
    if constexpr (sizeof(W) == sizeof(float)) {
      sum += bf16_to_float(x[k]) * w[k];
    } else {
      sum += bf16_to_float(x[k]) * bf16_to_float(w[k]);
    }
  }
  return sum;
}

void run(const RouterGemmArgs& args) {
  const RouterGemmShape& shape = args.shape;
  const auto sum = shape.weights == DType::f32 ? sum_of<float> : sum_of<uint16_t>;
#pragma omp parallel for schedule(static) collapse(2)
  for (int t = 0; t < shape.tokens; ++t) {
    for (int e = 0; e < shape.experts; ++e) args.store(t, e, sum(args, t, e));
  }
}

const Kernel<RouterGemm> kernel({
    .name = "per_logit",
    .backend = Backend::host,
    .help = "logits in parallel, one sum each",
    .launch = [](RouterGemm& problem, const Launch&) { run(problem.args()); },
});

}  // namespace
}  // namespace moegate::router_gemm
