// SPDX-License-Identifier: Apache-2.0
// The products expert by expert: all rows of an expert meet a panel of its columns together,
// however many blocks they fill.
//
// Floor: the active experts' codes and scales from memory, at 55 GB/s (`moegate doctor`).
// One thread of an AMD EPYC (Zen 4), other programs running, timed apart from the harness, warm,
// MXFP4, K = 2880:
//   rows of an expert         1           4 or more
//   avx512bf16                21 GB/s     72e9 multiply-adds/s
//   avx512                    13.5 GB/s   48e9
//   avx2                      7.8 GB/s    31e9
// With one row decoding binds: permutations, shifts and products compete for three ports. From four
// rows on products bind: the processor has 58e9 a second in fp32, 85e9 of pairs of bf16.
#include "kernels/w4_moe/host/product.h"

namespace moegate::w4_moe::host {

void launch_expert_once(const Operands& operands) {
  const W4Args& args = operands.args;
  const int blocks = *args.padded_rows / args.shape.block;
  int firsts[1025];  // blocks with which experts begin, of up to 1024, and the end
  int experts = 0;
  for (int b = 0; b < blocks; ++b) {
    if (b == 0 || args.expert_ids[b] != args.expert_ids[b - 1]) firsts[experts++] = b;
  }
  firsts[experts] = blocks;
#pragma omp parallel
  {
    widen(operands);
#pragma omp for schedule(dynamic) collapse(2)
    for (int e = 0; e < experts; ++e) {
      for (int column = 0; column < args.shape.n; column += kPanelColumns) {
        multiply_blocks(operands, firsts[e], firsts[e + 1], column);
      }
    }
  }
}

namespace {
const HostKernel<launch_expert_once> kernel("expert_once", "expert by expert; reads a column once");

}  // namespace
}  // namespace moegate::w4_moe::host
