// SPDX-License-Identifier: Apache-2.0
// The products expert by expert: a column of the output decodes its weights once and
// multiplies all rows of its expert with them, however many blocks these fill.
#include "kernels/w4_moe/host/rows.h"

namespace moegate::w4_moe::host {

void launch_expert_once(const W4Args& args, float* x) {
  const W4Shape& shape = args.shape;
  const int blocks = *args.padded_rows / shape.block;
  int firsts[1025];  // blocks with which experts begin, of up to 1024, and the end
  int experts = 0;
  for (int b = 0; b < blocks; ++b) {
    if (b == 0 || args.expert_ids[b] != args.expert_ids[b - 1]) firsts[experts++] = b;
  }
  firsts[experts] = blocks;
#pragma omp parallel
  {
    float* weights = weights_of_thread(args, x);
    widen(args, x);
#pragma omp for schedule(dynamic, 16) collapse(2)
    for (int e = 0; e < experts; ++e) {
      for (int column = 0; column < shape.outputs(); ++column) {
        const int first = firsts[e];
        const Column c = column_of(args, args.expert_ids[first], column, weights);
        for (int b = first; b < firsts[e + 1]; ++b) {
          for_rows(args, b, [&](int32_t r) { multiply(args, x, c, column, r); });
        }
      }
    }
  }
}

namespace {
const HostKernel<launch_expert_once> kernel("expert_once",
                                            "expert by expert; decodes a column once");

}  // namespace
}  // namespace moegate::w4_moe::host
