// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// dense_fc2 in the structure of TensorRT-LLM PR 12686, on Hopper's tensor cores: an expert's whole
// part of K is summed up in one accumulator, which is added to the tile's sums once, times alpha.
// Threads read the alphas of their two rows from global memory, two experts ahead (the PR: one), so
// that neither a ring nor a warp for them is needed (nor shared memory; threads are as many as
// before, per_expert_kernel.cuh says why). Two accumulators: the next expert's products
// start before this one's are added, and a stage is free once the one after it is being multiplied.
//
// With block scale factors sums have to leave the accumulator after every 128 of K all the same:
// what remains of the idea then is where alpha comes from.
//
// Floors on an H200 at DeepSeek-R1's shape (H = 7168, K = 65536): weights of 470 MB, and at
// M = 128 activations of 8 MB, at 4.42 TB/s: 108 us; 2*M*7168*65536 FLOP at 1549 TFLOP/s: 78 us at
// M = 128, 155 at 256. There are 56 tiles of 128 columns (112 of 64, _n64) for each 128 tokens, and
// 132 SMs with a block each: with M <= 128 three of five SMs have no tile of 128 columns.
//
// Measured on an H200, cold, us at M = 1, 128, 192, 256, 288, 384, 512 (commit 0bfbd21, 3
// processes): 151 157 200 198 359 374 411, so 1.27, 1.29, 1.16, 1.23, 1.18, 1.18 and 1.18 times as
// fast as alpha_per_k_tile; _n64 118 133 259 279 394 425 577 (1.31, 1.25, 1.28, 1.22, 1.26, 1.21,
// 1.18). From M = 129 on power holds the clock at 1.5 to 1.8 GHz.
//
// Steps of 256 of K are an expert at I = 256: before and after then do the same products and sums,
// and differ by 0.97 to 1.07 times. The one loss, _n64 at M = 384, takes as many cycles as before
// (694,000 and 697,000) at a clock that power holds 3 % lower.
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/alpha/per_expert_kernel.cuh"

namespace moegate::dense_fc2::alpha {
namespace {

template <int Columns>
void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::expert, Columns, 1>(args.shape, [&]<class C>(C) {
    launch_tiles<C>(alpha_per_expert_kernel<C>, kSharedBytes<Shared<C>>, args, where);
  });
}

const Kernel<DenseFc2> kernel(
    spec("alpha_per_expert", "wgmma, one sum and one alpha per expert (TensorRT-LLM PR 12686)",
         launch<128>));
const Kernel<DenseFc2> narrow(spec("alpha_per_expert_n64",
                                   "alpha_per_expert on tiles of 64 columns", launch<64>));

}  // namespace
}  // namespace moegate::dense_fc2::alpha
