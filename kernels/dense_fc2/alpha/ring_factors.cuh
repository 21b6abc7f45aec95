// SPDX-License-Identifier: Apache-2.0
// Alphas and scale factors of a tile's rows through a ring of ten stages of its own in shared
// memory, which a warp fills: a kernel's two warpgroups that multiply, its thread that copies, and
// that warp.
#pragma once

#include "kernels/dense_fc2/alpha/product.cuh"

namespace moegate::dense_fc2::alpha {

using namespace cuda;

constexpr int kAlphaStages = 10;

template <class C>
struct RingShared : Shared<C> {
  // Of a stage: alphas, then a's scale factors of each slab.
  static constexpr int kVectors = 1 + (C::kBlockScales ? C::kSlabs : 0);
  float factors[kAlphaStages][kVectors][kRows];
  uint64_t factors_full[kAlphaStages], factors_empty[kAlphaStages];
};

/// Fills the ring of alphas, by one warp: a stage for every step of K, or for every expert.
template <class C>
__device__ void produce_factors(const DenseFc2Args& args, RingShared<C>& shared) {
  const DenseFc2Shape& s = args.shape;
  const int lane = threadIdx.x % 32;
  Ring ring{kAlphaStages};
  for_tiles<C>(s, [&](const Tile& tile) {
    uint32_t alphas[kRows / 32], scales[kRows / 32];  // indices: 32 bits hold those of both
#pragma unroll
    for (int i = 0; i < kRows / 32; ++i) {
      // Beyond the last row: any, nothing is written.
      const uint32_t row = min(tile.row + lane + i * 32, s.tokens - 1);
      alphas[i] = row * s.experts;
      scales[i] = row * s.k_groups();
    }
    for (int step = 0; step < (C::kExpertSums ? s.experts : s.k_tiles()); ++step, ring.advance()) {
      const int expert = C::kExpertSums ? step : step / (s.inter / C::kKTile);
      wait_barrier(&shared.factors_empty[ring.stage], ring.phase ^ 1);
      const uint32_t to = shared_address(&shared.factors[ring.stage][0][lane]);
#pragma unroll
      for (int i = 0; i < kRows / 32; ++i) {
        copy_async<4>(to + i * 128, args.alpha + alphas[i] + expert, true);
        if constexpr (C::kBlockScales) {
          const float* from = args.a_scales + scales[i] + step * C::kSlabs;
#pragma unroll
          for (int slab = 0; slab < C::kSlabs; ++slab)
            copy_async<4>(to + (1 + slab) * kRows * 4 + i * 128, from + slab, true);
        }
      }
      arrive_after_copies(&shared.factors_full[ring.stage]);
    }
  });
}

/// What comes through the ring, from the side of a thread that multiplies.
template <class C>
class RingFactors {
 public:
  __device__ RingFactors(const DenseFc2Args& args, RingShared<C>& shared)
      : args_(args), shared_(shared) {}

  __device__ void begin(const Tile& tile) {
    b_ = args_.b_scales + int64_t{tile.column / kMoeGroup} * args_.shape.k_groups();
  }

  template <int Slab>
  __device__ Factor<C::kBlockScales> next() {
    const int stage = ring_.stage;
    if constexpr (Slab == 0) wait_barrier(&shared_.factors_full[stage], ring_.phase);
    Factor<C::kBlockScales> factor = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      factor.alpha[i] = shared_.factors[stage][0][thread_row() + i * 8];
      if constexpr (C::kBlockScales)
        factor.a[i] = shared_.factors[stage][1 + Slab][thread_row() + i * 8];
    }
    if constexpr (C::kBlockScales) factor.b = __ldg(b_++);
    if constexpr (Slab + C::kUnitSlabs == C::kSlabs) {
      arrive_warp(&shared_.factors_empty[stage]);
      ring_.advance();
    }
    return factor;
  }

 private:
  const DenseFc2Args& args_;
  RingShared<C>& shared_;
  Ring ring_{kAlphaStages};
  const float* b_ = nullptr;
};

/// What a kernel does.
template <class C>
__device__ void multiply_with_ring(const Maps& maps, const DenseFc2Args& args) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<RingShared<C>>(raw);
  init_barriers(2, shared.factors_full, 32);
  init_barriers(3, shared.factors_empty, kConsumers / 32);
  init_stages<C>(shared);
  __syncthreads();
  if (threadIdx.x < kConsumers) {
    take_registers<kConsumerRegisters>();
    consume<C>(args, shared, RingFactors<C>(args, shared));
  } else {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x / 32 == kConsumers / 32 && elected()) produce<C>(maps, args.shape, shared);
    if (threadIdx.x / 32 == kConsumers / 32 + 1) produce_factors<C>(args, shared);
  }
}

}  // namespace moegate::dense_fc2::alpha
