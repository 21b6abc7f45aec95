// SPDX-License-Identifier: Apache-2.0
// The product of a tile of dense_fc2, from the side of the two warpgroups that multiply: products
// go to one accumulator while the other, which is complete, is added to the tile's sums, times
// alpha and the scale factors that go with it.
#pragma once

#include "kernels/cuda/wgmma.cuh"
#include "kernels/dense_fc2/alpha/tiles.cuh"

namespace moegate::dense_fc2::alpha {

using namespace cuda;

/// The first of a thread's two rows of a tile; the other is 8 further down.
__device__ inline int thread_row() {
  return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
}

/// What an accumulator is multiplied by, for either of a thread's rows.
template <bool BlockScales>
struct Factor {
  float alpha[2];
  float a[2], b;  // scale factors, where they change along K

  __device__ float of(int row) const { return BlockScales ? alpha[row] * a[row] * b : alpha[row]; }
};

/// The stages as they come. A unit is what is committed at once: a stage, or a slab of it.
template <class C>
class Operands {
 public:
  __device__ explicit Operands(Shared<C>& shared) : shared_(shared) {}

  /// acc (+)= the products of the next unit, which starts with a stage's slab `Slab`; under way.
  template <int Slab, bool Add>
  __device__ void start(float (&acc)[C::kColumns / 2]) {
    if constexpr (Slab == 0) wait_barrier(&shared_.full[ring_.stage], ring_.phase);
    const uint32_t stage = shared_address(shared_.stages[ring_.stage]);
    const uint32_t a = operand(stage + threadIdx.x / 128 * (kASlabBytes / 2));
    const uint32_t b = operand(stage + C::kABytes);
    begin_products();
#pragma unroll
    for (int slab = Slab; slab < Slab + C::kUnitSlabs; ++slab) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        multiply<C::kColumns>(acc, a + slab * (kASlabBytes >> 4) + 2 * k,
                              b + slab * (C::kBSlabBytes >> 4) + 2 * k,
                              Add || slab > Slab || k > 0);
      }
    }
    commit_products();
  }

  /// After start<Slab>: waits for the unit before, and hands its stage back.
  template <int Slab>
  __device__ void finish_previous() {
    wait_products<1>();
    if constexpr (Slab == 0) release();
    if constexpr (Slab + C::kUnitSlabs == C::kSlabs) {
      held_ = ring_.stage;
      ring_.advance();
    }
  }
  /// Waits for all units.
  __device__ void finish() {
    wait_products();
    release();
    held_ = kNone;
  }

 private:
  static constexpr int kNone = -1;

  __device__ void release() {
    if (held_ == kNone) return;
    const int lane = threadIdx.x % 32;
    if constexpr (C::kBlocks == 1) {
      if (lane == 0) arrive_barrier(&shared_.empty[held_]);
    } else {
      if (lane < C::kBlocks) {
        arrive_at(shared_address_of(shared_address(&shared_.empty[held_]), lane));
      }
    }
  }

  Shared<C>& shared_;
  Ring ring_{C::kStages};
  int held_ = kNone;  // the stage that the last unit started reads, where it is the stage's last
};

/// The sums of a tile. Factors::next<Slab>() gives the factor of one promotion after another, and
/// is asked while the products are made that it belongs to: one promotion ahead.
template <class C, class Factors>
class TileSums {
 public:
  using Accumulator = float[C::kColumns / 2];

  __device__ TileSums(const DenseFc2Shape& s, Operands<C>& operands, Factors& factors)
      : operands_(operands), factors_(factors), units_(C::units(s)) {
    Accumulator first, second = {};
    const int promotions = C::promotions(s);
    constexpr int kSecondSlab = C::kSlabs - C::kUnitSlabs;
    for (int i = 0; i + 1 < promotions; i += 2) {
      next<0>(first, second);
      next<kSecondSlab>(second, first);
    }
    if (promotions % 2 == 0) {
      finish(second);
    } else {
      next<0>(first, second);
      finish(first);
    }
  }

  Accumulator sums = {};

 private:
  /// Begins a promotion's products in `acc` and adds those of the one before, in `complete`; before
  /// the first one these are 0.
  template <int Slab>
  __device__ void next(Accumulator& acc, Accumulator& complete) {
    operands_.template start<Slab, false>(acc);
    const Factor<C::kBlockScales> due = factor_;
    factor_ = factors_.template next<Slab>();
    operands_.template finish_previous<Slab>();
    add(complete, due);
    for (int unit = 1; unit < units_; ++unit) {
      operands_.template start<Slab, true>(acc);
      operands_.template finish_previous<Slab>();
    }
  }
  __device__ void finish(Accumulator& complete) {
    operands_.finish();
    add(complete, factor_);
  }

  __device__ void add(Accumulator& complete, const Factor<C::kBlockScales>& factor) {
#pragma unroll
    for (float& x : complete) asm volatile("" : "+f"(x)::"memory");  // not read before the wait
    const float factors[] = {factor.of(0), factor.of(1)};
#pragma unroll
    for (int i = 0; i < C::kColumns / 2; ++i) sums[i] += complete[i] * factors[i / 2 % 2];
  }

  Operands<C>& operands_;
  Factors& factors_;
  const int units_;
  Factor<C::kBlockScales> factor_ = {};  // of the products under way
};

/// Multiplies and writes a block's tiles, by two warpgroups.
template <class C, class Factors>
__device__ void consume(const DenseFc2Args& args, Shared<C>& shared, Factors factors) {
  moe_gemm::MoeGemmArgs output{};
  output.out = args.out;
  output.shape = args.shape.product();
  Operands<C> operands(shared);
  for_tiles<C>(args.shape, [&](const Tile& tile) {
    factors.begin(tile);
    const TileSums<C, Factors> product(args.shape, operands, factors);
    const float scale = C::kBlockScales ? 1 : __ldg(args.a_scales) * __ldg(args.b_scales);
    const int warp = threadIdx.x / 32;
    moe_gemm::fp8::write_rows<moe_gemm::fp8::Output::rows>(
        output, tile.column, tile.row + warp * 16 + threadIdx.x % 16, scale, product.sums,
        shared.staged[warp]);
  });
}

}  // namespace moegate::dense_fc2::alpha
