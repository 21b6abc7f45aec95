// SPDX-License-Identifier: Apache-2.0
// The products block by block, as the GPU's grouped GEMMs do them: a panel of columns is read for
// every block of rows of its expert. The yardstick.
//
// Floor: the active experts' codes and scales from memory, once per block, at 55 GB/s (`moegate
// doctor`). How near the loops come: expert_once.cc.
#include "kernels/w4_moe/host/product.h"

namespace moegate::w4_moe::host {

void launch_gather(const Operands& operands) {
  const W4Args& args = operands.args;
  const int blocks = *args.padded_rows / args.shape.block;
#pragma omp parallel
  {
    widen(operands);
#pragma omp for schedule(static) collapse(2)
    for (int b = 0; b < blocks; ++b) {
      for (int column = 0; column < args.shape.n; column += kPanelColumns) {
        multiply_blocks(operands, b, b + 1, column);
      }
    }
  }
}

namespace {
const HostKernel<launch_gather> kernel("gather", "block by block; reads a column for every block");

}  // namespace
}  // namespace moegate::w4_moe::host
