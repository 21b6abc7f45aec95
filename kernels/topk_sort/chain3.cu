// SPDX-License-Identifier: Apache-2.0
// topk_sort as three launches, the structure of the public chain before AITER PR 3526: top-k, sort,
// zero. (Four beyond 512 tokens, where the sort takes two.)
#include "kernels/topk_sort/launches.h"

namespace moegate {
namespace routing {

void launch_chain3(const TopkSortArgs& args, void* workspace, const Target& target) {
  const ChainBuffers buffers = chain_buffers(args.shape, workspace);
  launch_topk(args, buffers, target);
  launch_sort(args, buffers, false, target);
  launch_zero(args, target);
}

}  // namespace routing

namespace {

const Kernel<TopkSort> kernel({
    .name = "chain3",
    .backend = Backend::cuda,
    .help = "three launches: warp-level top-k, sort, zero",
    .launch =
        [](TopkSort& problem, const Launch& launch) {
          routing::launch_chain3(problem.args(), problem.workspace(),
                                 {launch.device, static_cast<cudaStream_t>(launch.stream)});
        },
    .workspace = [](const Case& c,
                    const DeviceFacts&) { return routing::chain_bytes(TopkSortShape::of(c)); },
    .unsupported =
        [](const Case& c, const DeviceFacts&) {
          return routing::warp_select_unsupported(TopkSortShape::of(c));
        },
});

}  // namespace
}  // namespace moegate
