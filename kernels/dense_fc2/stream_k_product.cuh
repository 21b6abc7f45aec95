// SPDX-License-Identifier: Apache-2.0
// What stream_k computes with: slots in shared memory, the order of its work, and the products of a
// span of K by two warpgroups that take turns at the tensor cores.
#pragma once

#include <cstddef>

#include "kernels/cluster.cuh"
#include "kernels/dense_fc2/stream_k_plan.h"
#include "kernels/moe_gemm/pipeline.cuh"
#include "kernels/moe_gemm/ring.cuh"
#include "kernels/moe_gemm/turns.cuh"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate::gemm::stream_k {

constexpr int kProductColumns = 128;
constexpr int kProductBytes = kProductColumns * kMoeGroup, kProductRowBytes = 64 * kMoeGroup;
constexpr int kConsumers = 256, kThreads = kConsumers + 128;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;

/// Of 128 rows each warpgroup has 64, and one product after the other; of 64 rows both have all,
/// each with one of the products.
template <int Rows, bool kBlockScales>
struct Config {
  static constexpr int kProducts = Rows / 64;  // of a warpgroup
  /// Groups of 128 along K that are summed up before they meet their factor.
  static constexpr int kSpan = kBlockScales || Rows == 64 ? 1 : 2;
  static constexpr int kRowBytes = Rows * kMoeGroup;       // of a slot
  static constexpr int kSlotColumns = slot_columns(Rows);  // of a slot
  static constexpr int kWeightBytes = kSlotColumns * kMoeGroup;
  static constexpr int kRowSlots = Rows == 128 ? 6 : 5;
  static constexpr int kWeightSlots = Rows == 128 ? 8 : 5;
};

template <class C>
struct Shared {
  uint8_t rows[C::kRowSlots][C::kRowBytes];           // with the 128-byte swizzle
  uint8_t weights[C::kWeightSlots][C::kWeightBytes];  // likewise
  uint64_t rows_full[C::kRowSlots], rows_empty[C::kRowSlots];
  uint64_t weights_full[C::kWeightSlots], weights_empty[C::kWeightSlots];
};

struct Work {
  DenseFc2Args args;
  Plan plan;
  float* partials;  // [slots, rows, kColumns]
};

/// A segment's spans: up to kSpan groups of one expert each.
template <int kSpan>
struct Spans {
  int per_expert;  // groups
  int expert, last;
  int first = 0;  // group of the expert

  __device__ Spans(const DenseFc2Shape& shape, const Segment& segment)
      : per_expert(shape.expert_groups()), expert(segment.first), last(segment.last) {}
  __device__ bool more() const { return expert < last; }
  __device__ int groups() const { return min(kSpan, per_expert - first); }
  __device__ int group() const { return expert * per_expert + first; }
  __device__ void advance() {
    first += kSpan;
    if (first < per_expert) return;
    first = 0;
    ++expert;
  }
};

/// This block's cluster among those of its lane.
__device__ inline int lane_of(const Plan& plan) {
  return blockIdx.x / plan.blocks % plan.lanes;
}
__device__ inline int cluster_of(const Plan& plan) {
  return blockIdx.x / plan.blocks / plan.lanes;
}

/// Calls f with every segment of this block's cluster.
template <class F>
__device__ void for_each_segment(const Plan& plan, F f) {
  const int64_t end = plan.begin(cluster_of(plan) + 1);
  for (int64_t unit = plan.begin(cluster_of(plan)); unit < end;) {
    const Segment segment = plan.segment(unit, end);
    f(segment);
    unit += segment.last - segment.first;
  }
}

/// What a warpgroup's products of a tile meet: of a thread's two rows, alpha; and with it in the
/// block-scaled form both scale factors. Read ahead by one span.
template <int Rows, bool kBlockScales>
class Factors {
 public:
  using C = Config<Rows, kBlockScales>;

  __device__ Factors(const DenseFc2Args& args, int row, int column, Spans<C::kSpan> spans)
      : spans_(spans) {
    const DenseFc2Shape& s = args.shape;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t at = min(row + i * 8, s.tokens - 1);
      alpha_[i] = args.alpha + at * s.experts;
      if constexpr (kBlockScales) row_scales_[i] = args.a_scales + at * s.k_groups();
    }
    if constexpr (kBlockScales) {
#pragma unroll
      for (int p = 0; p < C::kProducts; ++p) {
        // Beyond the last column: any factor, nothing is written.
        const int64_t n_group = min(column / kMoeGroup + p, s.n_groups() - 1);
        weight_scales_[p] = args.b_scales + n_group * s.k_groups();
      }
    }
    read();
  }
  /// Those of the span at hand, product p: of the thread's first row and of its second.
  __device__ float2 get(int p) const {
    if constexpr (!kBlockScales) return {rows_[0], rows_[1]};
    return {rows_[0] * weights_[p], rows_[1] * weights_[p]};
  }
  __device__ void advance() {
    spans_.advance();
    if (spans_.more()) read();
  }

 private:
  __device__ void read() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows_[i] = __ldg(alpha_[i] + spans_.expert);
      if constexpr (kBlockScales) rows_[i] *= __ldg(row_scales_[i] + spans_.group());
    }
    if constexpr (kBlockScales) {
#pragma unroll
      for (int p = 0; p < C::kProducts; ++p) {
        weights_[p] = __ldg(weight_scales_[p] + spans_.group());
      }
    }
  }

  Spans<C::kSpan> spans_;
  const float *alpha_[2], *row_scales_[2], *weight_scales_[C::kProducts];
  float rows_[2], weights_[C::kProducts];
};

/// The rings from a warpgroup's side.
template <int Rows, bool kBlockScales>
class Consumer {
 public:
  using C = Config<Rows, kBlockScales>;
  using S = Shared<C>;

  __device__ Consumer(uint32_t base, const Plan& plan)
      : base_(base),
        row_owners_(plan.share_weights ? 1 : plan.blocks),
        weight_owners_(plan.share_weights ? plan.blocks : 1) {
    const int lane = threadIdx.x % 32;
    row_owner_ = shared_address_of(base_, row_owners_ == 1 ? cluster_rank() : lane % row_owners_);
    weight_owner_ =
        shared_address_of(base_, weight_owners_ == 1 ? cluster_rank() : lane % weight_owners_);
  }

  /// Takes part in a span without rows to multiply.
  __device__ void pass_span(int groups) {
#pragma unroll
    for (int p = 0; p < C::kProducts; ++p) {
      const Ring first_rows = rows_;
      wait_turn(warpgroup_);
      pass_turn(warpgroup_);
      for (int g = 0; g < groups; ++g) {
        const Slot slot = next_slot();
        wait_slot(slot, p == 0);
        release(slot, p == C::kProducts - 1);
      }
      if (p < C::kProducts - 1) rows_ = first_rows;
    }
  }

  /// sums += factor * the products of a span: `groups` slots of rows and, for each of the
  /// warpgroup's products, of weights.
  __device__ void multiply_span(int groups, const Factors<Rows, kBlockScales>& factors,
                                float (&sums)[C::kProducts][kProductColumns / 2]) {
#pragma unroll
    for (int p = 0; p < C::kProducts; ++p) {
      const Ring first_rows = rows_;
      const Slot first = next_slot();
      wait_slot(first, p == 0);
      float acc[kProductColumns / 2];
      wait_turn(warpgroup_);
      start_slot(acc, first, false);
      if (C::kSpan == 2 && groups == 2) {
        const Slot second = next_slot();
        wait_slot(second, p == 0);
        start_slot(acc, second, true);
        pass_turn(warpgroup_);
        wait_products<1>();
        release(first, p == C::kProducts - 1);
        wait_products();
        release(second, p == C::kProducts - 1);
      } else {
        pass_turn(warpgroup_);
        wait_products();
        release(first, p == C::kProducts - 1);
      }
      if (p < C::kProducts - 1) rows_ = first_rows;
      const float2 factor = factors.get(p);
#pragma unroll
      for (int i = 0; i < kProductColumns / 2; ++i) {
        sums[p][i] += acc[i] * (i / 2 % 2 == 0 ? factor.x : factor.y);
      }
    }
  }

 private:
  /// A place in each ring.
  struct Slot {
    Ring rows, weights;
  };

  __device__ Slot next_slot() {
    const Slot slot = {rows_, weights_};
    rows_.advance();
    weights_.advance();
    return slot;
  }

  __device__ void wait_slot(const Slot& slot, bool rows_too) {
    if (rows_too) {
      wait_barrier(base_ + static_cast<uint32_t>(offsetof(S, rows_full)) + slot.rows.stage * 8,
                   slot.rows.phase);
    }
    wait_barrier(base_ + static_cast<uint32_t>(offsetof(S, weights_full)) + slot.weights.stage * 8,
                 slot.weights.phase);
  }

  /// acc (+)= the product of a slot, under way.
  __device__ void start_slot(float (&acc)[kProductColumns / 2], const Slot& slot, bool add) {
    const uint32_t a =
        operand(base_ + static_cast<uint32_t>(offsetof(S, rows)) + slot.rows.stage * C::kRowBytes +
                (Rows == 128 ? warpgroup_ * kProductRowBytes : 0));
    const uint32_t b = operand(base_ + static_cast<uint32_t>(offsetof(S, weights)) +
                               slot.weights.stage * C::kWeightBytes +
                               (Rows == 128 ? 0 : warpgroup_ * kProductBytes));
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      multiply<kProductColumns>(acc, a + 2 * k, b + 2 * k, add || k > 0);
    }
    commit_products();
  }

  /// The warp has read a slot: tells the blocks whose producers wait for that.
  __device__ void release(const Slot& slot, bool rows_too) {
    __syncwarp();
    const int lane = threadIdx.x % 32;
    if (lane < weight_owners_) {
      arrive_at(weight_owner_ + static_cast<uint32_t>(offsetof(S, weights_empty)) +
                slot.weights.stage * 8);
    }
    if (rows_too && lane < row_owners_) {
      arrive_at(row_owner_ + static_cast<uint32_t>(offsetof(S, rows_empty)) + slot.rows.stage * 8);
    }
  }

  uint32_t base_;                      // of shared memory
  int row_owners_, weight_owners_;     // blocks that fill a slot
  uint32_t row_owner_, weight_owner_;  // shared memory of the block that the lane tells
  int warpgroup_ = threadIdx.x / 128;
  Ring rows_{C::kRowSlots}, weights_{C::kWeightSlots};
};

}  // namespace moegate::gemm::stream_k
