// SPDX-License-Identifier: Apache-2.0
// The products block by block, as the GPU's grouped GEMMs do them: a column of the output
// decodes its weights for every block of rows of its expert. The yardstick.
//
// Floor: the active experts' weights from memory, once per block; decoding takes longer.
#include "kernels/w4_moe/host/rows.h"

namespace moegate::w4_moe::host {

void launch_gather(const W4Args& args, float* x) {
  const W4Shape& shape = args.shape;
  const int blocks = *args.padded_rows / shape.block;
#pragma omp parallel
  {
    float* weights = weights_of_thread(args, x);
    widen(args, x);
#pragma omp for schedule(static) collapse(2)
    for (int b = 0; b < blocks; ++b) {
      for (int column = 0; column < shape.outputs(); ++column) {
        const Column c = column_of(args, args.expert_ids[b], column, weights);
        for_rows(args, b, [&](int32_t r) { multiply(args, x, c, column, r); });
      }
    }
  }
}

namespace {
const HostKernel<launch_gather> kernel("gather",
                                       "block by block; decodes a column for every block");

}  // namespace
}  // namespace moegate::w4_moe::host
