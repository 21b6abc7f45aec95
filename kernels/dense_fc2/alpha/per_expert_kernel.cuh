// SPDX-License-Identifier: Apache-2.0
// The kernel of alpha_per_expert, alpha_per_expert_cluster2 and of two steps in one_by_one.cu: two
// warpgroups that multiply and read their alphas from global memory, and a thread that copies. That
// thread has a warpgroup to itself, of which it needs a warp: of a quarter of an SM's registers
// three warps have 168 per thread each, too few for two accumulators and sums; only a warpgroup can
// give some of its own up.
#pragma once

#include "kernels/dense_fc2/alpha/product.cuh"

namespace moegate::dense_fc2::alpha {

/// Alphas and scale factors of a thread's two rows, from global memory. What next() gives was asked
/// for a promotion before, and is used a promotion later. One promotion is too short a time where
/// tiles have 64 columns: M = 384 in steps of 256 then took 472 us, with two it takes 426 (H200,
/// commits 7ebba43 and 0bfbd21).
template <class C>
class GlobalFactors {
 public:
  __device__ explicit GlobalFactors(const DenseFc2Args& args) : args_(args) {}

  __device__ void begin(const Tile& tile) {
    const DenseFc2Shape& s = args_.shape;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Beyond the last row: any, nothing is written.
      const int64_t row = min(tile.row + thread_row() + i * 8, s.tokens - 1);
      alpha_[i] = args_.alpha + row * s.experts;
      a_[i] = args_.a_scales + row * s.k_groups();
    }
    b_ = args_.b_scales + int64_t{tile.column / kMoeGroup} * s.k_groups();
    expert_left_ = expert_promotions();
    left_ = C::promotions(s);
    ahead_ = load();
  }

  template <int Slab>
  __device__ Factor<C::kBlockScales> next() {
    const Factor<C::kBlockScales> factor = ahead_;
    if (--left_ > 0) ahead_ = load();
    return factor;
  }

 private:
  __device__ Factor<C::kBlockScales> load() {
    Factor<C::kBlockScales> factor = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      factor.alpha[i] = __ldg(alpha_[i]);
      if constexpr (C::kBlockScales) factor.a[i] = __ldg(a_[i]++);
    }
    if constexpr (C::kBlockScales) factor.b = __ldg(b_++);
    if (!C::kExpertSums && --expert_left_ > 0) return factor;
    expert_left_ = expert_promotions();
    ++alpha_[0];
    ++alpha_[1];
    return factor;
  }

  /// Promotions that an alpha serves.
  __device__ int expert_promotions() const {
    return C::kExpertSums ? 1 : args_.shape.inter / (C::kUnitSlabs * kMoeGroup);
  }

  const DenseFc2Args& args_;
  const float *alpha_[2], *a_[2], *b_;
  int expert_left_;  // of them, until the next expert
  int left_;         // factors of the tile
  Factor<C::kBlockScales> ahead_;
};

template <class C>
__global__ void __launch_bounds__(kThreads, 1)
    alpha_per_expert_kernel(const __grid_constant__ Maps maps,
                            const __grid_constant__ DenseFc2Args args) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<Shared<C>>(raw);
  init_stages(shared);
  __syncthreads();
  if constexpr (C::kBlocks > 1) {  // before any block arrives at, or copies to, another
    cluster_arrive();
    cluster_wait();
  }
  if (threadIdx.x < kConsumers) {
    take_registers<kConsumerRegisters>();
    consume(args, shared, GlobalFactors<C>(args));
  } else {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x / 32 == kConsumers / 32 && elected()) produce(maps, args.shape, shared);
  }
}

}  // namespace moegate::dense_fc2::alpha
