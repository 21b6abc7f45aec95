// SPDX-License-Identifier: Apache-2.0
// topk_sort as two launches: top-k, then one that sorts in its first blocks while the others zero
// moe_buf. (Three beyond 64 tokens, where counting comes first.)
//
// Measured on an H200, cold L2, in a graph; span in us for T = 1, 8, 32, 64 (E256: k 8, H 7168,
// softmax, bf16; E128: k 4, H 2880, topk_softmax, bf16):
//   E256  6.14 6.78 7.71 8.58    E128  5.06 5.22 5.73 6.40
// It saves what chain3 spends on its third launch: zeroing hides behind the sort's one block. With
// a buffer beyond L2 (T = 8192, H = 7168: 117 MB) that takes four zeroing blocks per SM: 53.2
// against chain3's 56.5; with one per SM it was 59.4.
#include "kernels/topk_sort/launches.h"

namespace moegate::topk_sort {

void launch_chain2(const TopkSortArgs& args, void* workspace, const Launch& where) {
  const ChainBuffers buffers = chain_buffers(args.shape, workspace);
  launch_topk(args, buffers, where);
  launch_sort(args, buffers, true, where);
}

namespace {

const Kernel<TopkSort> kernel({
    .name = "chain2",
    .backend = Backend::cuda,
    .help = "two launches: warp-level top-k; sort and zero together",
    .launch = launch_variant<launch_chain2>,
    .workspace = chain_workspace,
    .unsupported = warp_select_unsupported,
});

}  // namespace
}  // namespace moegate::topk_sort
