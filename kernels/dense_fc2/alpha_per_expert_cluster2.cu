// SPDX-License-Identifier: Apache-2.0
// alpha_per_expert on tiles of 256 tokens and 128 columns, by a cluster of two blocks one below the
// other, as TensorRT-LLM PR 12686 adds them: each block loads its own 128 rows of a and half of b's
// tile, which goes to both by TMA multicast. What the two take from L2 per step of K is three
// quarters of what two blocks would take by themselves: 48 KB in place of 64 per 128 of K.
//
// A stage is refilled once the warps of both blocks have handed it back. Where M is at most 128 the
// second block has no rows, and copies and multiplies for the first one's sake.
//
// Floors on an H200 at DeepSeek-R1's shape (H = 7168, K = 65536): weights of 470 MB, and at
// M = 256 activations of 17 MB, at 4.42 TB/s: 110 us; 2*M*7168*65536 FLOP at 1549 TFLOP/s: 155 us
// at M = 256. There are 56 clusters, 112 blocks, for each 256 tokens, and 132 SMs.
//
// Measured on an H200, cold, us at M = 128, 256, 288, 384 (commit 2087c86, 2 processes): 254 216
// 501 438, against 170 218 475 410 of alpha_per_expert. At M = 128 the second block's copies of
// zeros from beyond the last row were slower than those of rows, and are since left out. From M =
// 257 on clusters work on 512 tokens: 112 tiles of two blocks in two rounds of 66, where
// alpha_per_expert has 168 of one block, 36 of them in its second round.
#include "kernels/dense_fc2/alpha_per_expert_kernel.cuh"
#include "kernels/dense_fc2/dense_launch.cuh"

namespace moegate::gemm::dense {
namespace {

void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::expert, 128, 2>(args.shape, [&]<class C>(C) {
    launch_tiles<C>(alpha_per_expert_kernel<C>, kSharedBytes<Shared<C>>, args, where);
  });
}

const Kernel<DenseFc2> kernel(
    spec("alpha_per_expert_cluster2",
         "alpha_per_expert by clusters of two blocks that share the weights' tile", launch));

}  // namespace
}  // namespace moegate::gemm::dense
