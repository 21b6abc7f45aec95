// SPDX-License-Identifier: Apache-2.0
// The router's logits on the CPU in blocks: x is widened to floats once, the weights of four
// experts once for all tokens. A row of x then meets the four at a time, in eight sums each, which
// the compiler turns into vector instructions.
//
// Floor: W from memory for few tokens, the processor's multiply-adds for many.
#include <omp.h>

#include <algorithm>

#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

constexpr int kBlock = 4;  // experts

/// x as floats [T, H]; behind it the weights of a block for each thread.
size_t workspace_bytes(const RouterGemmShape& shape) {
  const auto rows = static_cast<size_t>(shape.tokens + kBlock * omp_get_max_threads());
  return sizeof(float) * rows * static_cast<size_t>(shape.hidden);
}

/// Row `expert` of w.
void widen(const RouterGemmArgs& args, int64_t expert, float* to) {
  const int width = args.shape.hidden;
  if (args.shape.weights == DType::f32) {
    std::copy_n(static_cast<const float*>(args.w) + expert * width, width, to);
    return;
  }
  const uint16_t* w = static_cast<const uint16_t*>(args.w) + expert * width;
  for (int k = 0; k < width; ++k) to[k] = bf16_to_float(w[k]);
}

/// Sums of a row of x and the rows of a block, `width` elements each.
void multiply(const float* x, const float* w, int width, float (&to)[kBlock]) {
  float sums[kBlock][kPiece] = {};
  for (int k = 0; k < width; k += kPiece) {
    for (int e = 0; e < kBlock; ++e) {
      const float* row = w + int64_t{e} * width + k;
      for (int i = 0; i < kPiece; ++i) sums[e][i] += x[k + i] * row[i];
    }
  }
  for (int e = 0; e < kBlock; ++e) {
    to[e] = 0;
    for (int i = 0; i < kPiece; ++i) to[e] += sums[e][i];
  }
}

void run(const RouterGemmArgs& args, float* x) {
  const RouterGemmShape& shape = args.shape;
  const int64_t width = shape.hidden, elements = shape.tokens * width;
#pragma omp parallel
  {
    float* w = x + elements + int64_t{kBlock} * omp_get_thread_num() * width;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < elements; ++i) x[i] = bf16_to_float(args.x[i]);
#pragma omp for schedule(static)
    for (int first = 0; first < shape.experts; first += kBlock) {
      const int experts = std::min(kBlock, shape.experts - first);
      // What is missing of the last block is its first row once more, for nobody.
      for (int e = 0; e < kBlock; ++e) widen(args, first + (e < experts ? e : 0), w + e * width);
      for (int t = 0; t < shape.tokens; ++t) {
        float sums[kBlock];
        multiply(x + t * width, w, shape.hidden, sums);
        for (int e = 0; e < experts; ++e) args.store(t, first + e, sums[e]);
      }
    }
  }
}

const Kernel<RouterGemm> kernel({
    .name = "blocked",
    .backend = Backend::host,
    .help = "four experts' weights widened at a time, eight sums for each logit",
    .launch = [](RouterGemm& problem,
                 const Launch&) { run(problem.args(), problem.workspace<float>()); },
    .workspace = [](const Case& c,
                    const DeviceFacts&) { return workspace_bytes(RouterGemmShape::of(c)); },
});

}  // namespace
}  // namespace moegate::router_gemm
