// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// dense_fc2 with single changes of TensorRT-LLM PR 12686, each without the others. The floors are
// those of alpha_per_expert.cu.
//
// alpha_from_global is alpha_per_k_tile, of which every step of K still is a sum of its own, but
// threads read their alphas from global memory, two steps ahead: what the ring and its warp cost.
// An alpha is read again for each step of its expert, as the ring does.
//
// alpha_ring_per_expert is alpha_per_k_tile with one sum per expert: what the additions cost. The
// ring and its warp stay, and bring one vector of alphas per expert.
//
// alpha_per_expert_n64_acc3 is alpha_per_expert_n64 with three accumulators (the PR: from two to
// three): two experts' products are under way while those of the one before are added. A stage, of
// 8 or 4, comes back a step of K later, too. There is no such form for 128 columns: three
// accumulators and the sums would be 4 x 64 registers, and a thread has 232.
//
// With block scale factors an accumulator takes 128 of K whatever the variant: alpha_from_global
// then is alpha_per_expert, and alpha_ring_per_expert is alpha_per_k_tile.
//
// On an H100, us at M = 128, 256, 384 (commit ce80d77, 3 processes): alpha_per_k_tile 200 234 437,
// alpha_from_global 187 219 423, alpha_ring_per_expert 177 211 381, alpha_per_expert 177 196 369:
// what costs is the additions. Two accumulators of 64 columns 172 271 439, three 171 270 407.
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/alpha/per_expert_kernel.cuh"
#include "kernels/dense_fc2/alpha/ring_factors.cuh"

namespace moegate::dense_fc2::alpha {
namespace {

template <class C>
struct ThreeAccumulators : C {
  static constexpr int kAccumulators = 3;
};

template <class C>
__global__ void __launch_bounds__(kThreads, 1)
    alpha_ring_per_expert_kernel(const __grid_constant__ Maps maps,
                                 const __grid_constant__ DenseFc2Args args) {
  multiply_with_ring<C>(maps, args);
}

void launch_from_global(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::k_tile, 128, 1>(args.shape, [&]<class C>(C) {
    launch_tiles<C>(alpha_per_expert_kernel<C>, kSharedBytes<Shared<C>>, args, where);
  });
}

void launch_ring_per_expert(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::expert, 128, 1>(args.shape, [&]<class C>(C) {
    launch_tiles<C>(alpha_ring_per_expert_kernel<C>, kSharedBytes<RingShared<C>>, args, where);
  });
}

void launch_three_accumulators(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  with_config<AlphaPer::expert, 64, 1>(args.shape, [&]<class Two>(Two) {
    using C = ThreeAccumulators<Two>;
    launch_tiles<C>(alpha_per_expert_kernel<C>, kSharedBytes<Shared<C>>, args, where);
  });
}

const Kernel<DenseFc2> from_global(
    spec("alpha_from_global", "alpha_per_k_tile with alphas from global memory, without a ring",
         launch_from_global));
const Kernel<DenseFc2> ring_per_expert(
    spec("alpha_ring_per_expert", "alpha_per_k_tile with one sum and one alpha per expert",
         launch_ring_per_expert));
const Kernel<DenseFc2> three_accumulators(spec("alpha_per_expert_n64_acc3",
                                               "alpha_per_expert_n64 with three accumulators",
                                               launch_three_accumulators));

}  // namespace
}  // namespace moegate::dense_fc2::alpha
