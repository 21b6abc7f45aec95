// SPDX-License-Identifier: Apache-2.0
// A further variant of an operator that moegate has: moe_sum on the CPU, two columns at a time.
#include "kernels/moe_sum/moe_sum.h"

namespace {

using namespace moegate;
using moe_sum::MoeSum;
using moe_sum::MoeSumArgs;

void launch(MoeSum& problem, const Launch&) {
  const MoeSumArgs args = problem.args();
  const int64_t hidden = args.shape.hidden, topk = args.shape.topk;
  for (int64_t t = 0; t < args.shape.tokens; ++t) {
    for (int64_t i = 0; i < hidden; i += 2) {
      const int64_t columns = i + 1 < hidden ? 2 : 1;
      float sums[2] = {};
      for (int64_t j = 0; j < topk; ++j) {
        const uint16_t* row = args.y + (t * topk + j) * hidden + i;
        for (int64_t c = 0; c < columns; ++c) sums[c] += bf16_to_float(row[c]);
      }
      for (int64_t c = 0; c < columns; ++c) {
        args.out[t * hidden + i + c] = float_to_bf16(args.shape.scale * sums[c]);
      }
    }
  }
}

const Kernel<MoeSum> kernel({.name = "two_columns",
                             .backend = Backend::host,
                             .help = "two columns of a token at a time, one thread",
                             .launch = launch});

}  // namespace
