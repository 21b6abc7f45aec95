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
// of tiles. reports/gallery/nvidia-h200-pr-tensorrt-llm-12686.md has all counts.
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/alpha/product.cuh"

namespace moegate::dense_fc2::alpha {
namespace {

constexpr int kAlphaStages = 10;

template <class C>
struct RingShared : Shared<C> {
  // Of a step: alphas, then a's scale factors of each slab.
  static constexpr int kVectors = 1 + (C::kBlockScales ? C::kSlabs : 0);
  float factors[kAlphaStages][kVectors][kRows];
  uint64_t factors_full[kAlphaStages], factors_empty[kAlphaStages];
};

/// Fills the ring of alphas, by one warp.
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
    for (int step = 0; step < s.k_tiles(); ++step, ring.advance()) {
      const int expert = step / (s.inter / C::kKTile);
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

template <class C>
__global__ void __launch_bounds__(kThreads, 1)
    alpha_per_k_tile_kernel(const __grid_constant__ Maps maps,
                            const __grid_constant__ DenseFc2Args args) {
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
