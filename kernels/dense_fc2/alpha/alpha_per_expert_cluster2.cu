// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA, clusters)
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
// SASS, steps of 128: two UTMALDG.2D, the one of weights with MULTICAST, and 24 QGMMA.64x128x32.
//
// Measured on an H200, cold, us at M = 1, 128, 192, 256, 288, 384, 512 (commit 0bfbd21, 3
// processes): 156 172 195 209 379 396 416, against 151 157 200 198 359 374 411 of alpha_per_expert
// and 192 202 231 243 425 441 486 of alpha_per_k_tile. Power takes what multicast gives: at M = 384
// it needs 5 % fewer cycles than alpha_per_expert (609,000 and 644,000), at 1.54 in place of 1.72
// GHz. At M <= 128 the second block multiplies for nothing.
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/alpha/per_expert_kernel.cuh"

namespace moegate::dense_fc2::alpha {
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
}  // namespace moegate::dense_fc2::alpha
