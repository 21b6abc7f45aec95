// SPDX-License-Identifier: Apache-2.0
// The product of a tile of dense_fc2, from the side of the two warpgroups that multiply: products
// go to one accumulator, or two, while another, which is complete, is added to the tile's sums,
// times alpha and the scale factors that go with it.
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
  __device__ explicit Operands(Shared<C>& shared) : shared_(shared) {
    for (int& stage : held_) stage = kNone;
  }

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

  /// After start<Slab>: waits for the unit kPending before, and hands its stage back if that was
  /// the stage's last.
  template <int Slab>
  __device__ void finish_previous() {
    wait_products<kPending>();
    constexpr int kUnit = kHeld * C::kStageUnits + Slab / C::kUnitSlabs;  // held_[0] has the first
    if constexpr ((kUnit - kPending + 1) % C::kStageUnits == 0) release(held_[0]);
    if constexpr (Slab + C::kUnitSlabs == C::kSlabs) {
#pragma unroll
      for (int i = 0; i + 1 < kHeld; ++i) held_[i] = held_[i + 1];
      held_[kHeld - 1] = ring_.stage;
      ring_.advance();
    }
  }
  /// Waits for all units.
  __device__ void finish() {
    wait_products();
#pragma unroll
    for (int& stage : held_) {
      release(stage);
      stage = kNone;
    }
  }

 private:
  static constexpr int kNone = -1;
  static constexpr int kPending = C::kAccumulators - 1;
  static constexpr int kHeld = (kPending + C::kStageUnits - 1) / C::kStageUnits;

  __device__ void release(int stage) {
    if (stage == kNone) return;
    const int lane = threadIdx.x % 32;
    if constexpr (C::kBlocks == 1) {
      if (lane == 0) arrive_barrier(&shared_.empty[stage]);
    } else {
      if (lane < C::kBlocks) {
        arrive_at(shared_address_of(shared_address(&shared_.empty[stage]), lane));
      }
    }
  }

  Shared<C>& shared_;
  Ring ring_{C::kStages};
  int held_[kHeld];  // the last stages whose last unit was started, oldest first
};

/// The sums of a tile. Factors::next<Slab>() gives the factor of one promotion after another, and
/// is asked while the products are made that it belongs to: kPending promotions ahead.
template <class C, class Factors>
class TileSums {
 public:
  using Accumulator = float[C::kColumns / 2];

  __device__ TileSums(const DenseFc2Shape& s, Operands<C>& operands, Factors& factors)
      : operands_(operands), factors_(factors), units_(C::units(s)) {
    static_assert(C::kAccumulators == 2 || C::kAccumulators == 3);
    if constexpr (C::kAccumulators == 2) {
      sum_by_two(C::promotions(s));
    } else {
      sum_by_three(C::promotions(s));
    }
  }

  Accumulator sums = {};

 private:
  static constexpr int kPending = C::kAccumulators - 1;

  __device__ void sum_by_two(const int promotions) {
    Accumulator first, second = {};
    for (int i = 0; i + 1 < promotions; i += 2) {
      next<0>(first, second);
      next<1>(second, first);
    }
    if (promotions % 2 == 0) {
      finish(second);
    } else {
      next<0>(first, second);
      finish(first);
    }
  }

  /// One loop with three ends. Of a copy of its body behind it, as above, the compiler does not see
  /// that no accumulator is read under way; it would wait for every product (C7514).
  __device__ void sum_by_three(int left) {
    Accumulator accs[3];
#pragma unroll
    for (int i = 0; i < C::kColumns / 2; ++i) accs[1][i] = accs[2][i] = 0;
    while (!ends_after<0>(accs, left) && !ends_after<1>(accs, left) && !ends_after<2>(accs, left)) {
    }
  }
  /// Makes one promotion, or both of a stage: turn `Turn` of three, after which the accumulators
  /// come again. True if none is left then.
  template <int Turn>
  __device__ bool ends_after(Accumulator (&accs)[3], int& left) {
    constexpr int kFirst = Turn * C::kStageUnits, kLast = kFirst + C::kStageUnits - 1;
    next<0>(accs[kFirst % 3], accs[(kFirst + 1) % 3]);
    if constexpr (C::kStageUnits == 2) next<1>(accs[kLast % 3], accs[(kLast + 1) % 3]);
    left -= C::kStageUnits;
    if (left > 0) return false;
    operands_.finish();
    add(accs[(kLast + 2) % 3], due_[0]);
    add(accs[kLast % 3], due_[1]);
    return true;
  }

  /// Begins a promotion's products in `acc` and adds those of the one kPending before, which are in
  /// `complete`; before the first ones these are 0. `Place`: among a stage's promotions, modulo
  /// their number.
  template <int Place>
  __device__ void next(Accumulator& acc, Accumulator& complete) {
    constexpr int kSlab = Place * C::kUnitSlabs % C::kSlabs;
    operands_.template start<kSlab, false>(acc);
    const Factor<C::kBlockScales> due = due_[0];
#pragma unroll
    for (int i = 0; i + 1 < kPending; ++i) due_[i] = due_[i + 1];
    due_[kPending - 1] = factors_.template next<kSlab>();
    operands_.template finish_previous<kSlab>();
    add(complete, due);
    for (int unit = 1; unit < units_; ++unit) {
      operands_.template start<kSlab, true>(acc);
      operands_.template finish_previous<kSlab>();
    }
  }
  __device__ void finish(Accumulator& complete) {
    operands_.finish();
    add(complete, due_[0]);
  }

  __device__ void add(Accumulator& complete, const Factor<C::kBlockScales>& factor) {
#pragma unroll
    for (int i = 0; i < C::kColumns / 2; ++i)
      asm volatile("" : "+f"(complete[i])::"memory");  // not read before the wait
    const float factors[] = {factor.of(0), factor.of(1)};
#pragma unroll
    for (int i = 0; i < C::kColumns / 2; ++i) sums[i] += complete[i] * factors[i / 2 % 2];
  }

  Operands<C>& operands_;
  Factors& factors_;
  const int units_;
  Factor<C::kBlockScales> due_[kPending] = {};  // of the promotions under way, oldest first
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
