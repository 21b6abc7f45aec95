// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// dense_fc2 in the structure of TensorRT-LLM before its PR 12686, on Hopper's tensor cores: every
// step of 128 or 256 of K is a product into an accumulator of its own, which is then added to the
// tile's sums in registers, times alpha. A warp brings the alphas of the tile's rows for every step
// through a ring of ten stages of its own in shared memory. Two accumulators: the next step's
// products start before this one's are added.
//
// Of 384 threads two warpgroups multiply 64 tokens each by 128 columns (_n64: by 64), a thread
// copies both operands by TMA. Blocks are persistent and take tiles by turns, tokens first.
//
// Floors on an H200 at DeepSeek-R1's shape (H = 7168, K = 65536): weights of 470 MB, and at
// M = 128 activations of 8 MB, at 4.42 TB/s: 108 us; 2*M*7168*65536 FLOP at 1549 TFLOP/s: 78 us at
// M = 128, 155 at 256. There are 56 tiles of 128 columns (112 of 64) for each 128 tokens, and 132
// SMs with a block each: with M <= 128 three of five SMs have no tile of 128 columns.
//
// Measured on an H200, cold, us at M = 1, 128, 192, 256, 288, 384, 512 (commit 0bfbd21, 3
// processes): 192 202 231 243 425 441 486; _n64 154 166 332 340 498 513 683. The steps are rounds
// of tiles. reports/gallery/pr-tensorrt-llm-12686.md has all counts on an H100.
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/alpha/ring_factors.cuh"

namespace moegate::dense_fc2::alpha {
namespace {

template <class C>
__global__ void __launch_bounds__(kThreads, 1)
    alpha_per_k_tile_kernel(const __grid_constant__ Maps maps,
                            const __grid_constant__ DenseFc2Args args) {
  multiply_with_ring<C>(maps, args);
}

template <int Columns>
void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::k_tile, Columns, 1>(args.shape, [&]<class C>(C) {
    launch_tiles<C>(alpha_per_k_tile_kernel<C>, kSharedBytes<RingShared<C>>, args, where);
  });
}

const Kernel<DenseFc2> kernel(spec("alpha_per_k_tile",
                                   "wgmma, every step of K summed up apart and multiplied by alpha",
                                   launch<128>));
const Kernel<DenseFc2> narrow(spec("alpha_per_k_tile_n64",
                                   "alpha_per_k_tile on tiles of 64 columns", launch<64>));

}  // namespace
}  // namespace moegate::dense_fc2::alpha
