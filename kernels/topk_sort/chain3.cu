// SPDX-License-Identifier: Apache-2.0
// topk_sort as three launches, the structure of the public chain before AITER PR 3526: top-k, sort,
// zero. (Four beyond 64 tokens, where the sort takes two.)
//
// Measured on an H200, cold L2, in a graph; span in us for T = 1, 8, 32, 64 (E256: k 8, H 7168,
// softmax, bf16; E128: k 4, H 2880, topk_softmax, bf16):
//   E256  7.33 8.03 8.96 9.95    E128  6.21 6.37 6.91 7.58
// Floor: three launches of 0.6, a cold load in the first: about 3. Of the 9.95: top-k 2.6, sort 5.7
// (one SM writes all 57 KB of padded rows), zero 1.3, the rest the gaps between launches.
#include "kernels/topk_sort/launches.h"

namespace moegate::topk_sort {

void launch_chain3(const TopkSortArgs& args, void* workspace, const Launch& where) {
  const ChainBuffers buffers = chain_buffers(args.shape, workspace);
  launch_topk(args, buffers, where);
  launch_sort(args, buffers, false, where);
  launch_zero(args, where);
}

namespace {

const Kernel<TopkSort> kernel({
    .name = "chain3",
    .backend = Backend::cuda,
    .help = "three launches: warp-level top-k, sort, zero",
    .launch = launch_variant<launch_chain3>,
    .workspace = chain_workspace,
    .unsupported = warp_select_unsupported,
});

}  // namespace
}  // namespace moegate::topk_sort
