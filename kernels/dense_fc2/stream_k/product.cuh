// SPDX-License-Identifier: Apache-2.0
// What stream_k computes with: slots in shared memory, the order of its work, and the products of a
// span of K by two warpgroups that take turns at the tensor cores.
#pragma once

#include <cstddef>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/turns.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/dense_fc2/stream_k/plan.h"

namespace moegate::dense_fc2::stream_k {

using namespace cuda;

constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;

/// Of 128 rows each of two warpgroups has 64; of 64 rows both have all, each with half of the
/// columns.
template <int Rows, bool kBlockScales>
struct Config {
  static constexpr int kRows = Rows, kColumns = tile_columns(Rows);
  static constexpr int kProductColumns = Rows == 128 ? kColumns : kColumns / 2;  // of a warpgroup
  static constexpr bool kScaled = kBlockScales;
  /// Stages (of 128 along K) that are summed up before they meet their factor.
  static constexpr int kSpan = kBlockScales || Rows == 64 ? 1 : 2;
  static constexpr int kRowBytes = Rows * kMoeGroup, kWeightBytes = kColumns * kMoeGroup;
  static constexpr int kStageBytes = kRowBytes + kWeightBytes;
  static constexpr int kStages = 5;
};

template <class C>
struct Shared {
  uint8_t stages[C::kStages][C::kStageBytes];  // rows, weights; with the 128-byte swizzle
  uint64_t full[C::kStages], empty[C::kStages];
};

struct Work {
  DenseFc2Args args;
  Plan plan;
  float* partials;  // [slots, rows, columns]
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

/// What a warpgroup's products meet: of a thread's two rows, alpha; and with it in the block-scaled
/// form both scale factors. Read ahead by one span.
template <class C>
class Factors {
 public:
  __device__ Factors(const DenseFc2Args& args, int row, int column, Spans<C::kSpan> spans)
      : spans_(spans), straddles_(column % kMoeGroup != 0) {
    const DenseFc2Shape& s = args.shape;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t at = min(row + i * 8, s.tokens - 1);
      alpha_[i] = args.alpha + at * s.experts;
      if constexpr (C::kScaled) row_scales_[i] = args.a_scales + at * s.k_groups();
    }
    if constexpr (C::kScaled) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        // Beyond the last column: any factor, nothing is written.
        const int64_t n_group = min(column / kMoeGroup + i, s.n_groups() - 1);
        weight_scales_[i] = args.b_scales + n_group * s.k_groups();
      }
    }
    read();
  }
  /// sums += the products of the span at hand times their factors.
  __device__ void add(const float (&acc)[C::kProductColumns / 2],
                      float (&sums)[C::kProductColumns / 2]) const {
#pragma unroll
    for (int i = 0; i < C::kProductColumns / 2; ++i) {
      const float row = rows_[i / 2 % 2];
      sums[i] += acc[i] * (C::kScaled ? row * column_factor(i / 32) : row);
    }
  }
  __device__ void advance() {
    spans_.advance();
    if (spans_.more()) read();
  }

 private:
  /// The scale factor of the weights in a run of 64 columns. Tiles of 192 columns start with one or
  /// two runs of the same group of 128.
  __device__ float column_factor(int run) const {
    return run == 0 || (run == 1 && !straddles_) ? weights_[0] : weights_[1];
  }
  __device__ void read() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows_[i] = __ldg(alpha_[i] + spans_.expert);
      if constexpr (C::kScaled) {
        rows_[i] *= __ldg(row_scales_[i] + spans_.group());
        weights_[i] = __ldg(weight_scales_[i] + spans_.group());
      }
    }
  }

  Spans<C::kSpan> spans_;
  const bool straddles_;
  const float *alpha_[2], *row_scales_[2], *weight_scales_[2];
  float rows_[2], weights_[2];
};

/// The stages from a warpgroup's side.
template <class C>
class Consumer {
 public:
  using S = Shared<C>;
  using Sums = float[C::kProductColumns / 2];

  __device__ Consumer(uint32_t base, const Plan& plan)
      : rows_(base + (C::kRows == 128 ? warpgroup_ * 64 * kMoeGroup : 0)),
        weights_(base + C::kRowBytes +
                 (C::kRows == 128 ? 0 : warpgroup_ * C::kProductColumns * kMoeGroup)),
        full_(base + static_cast<uint32_t>(offsetof(S, full))),
        releases_(static_cast<int>(threadIdx.x % 32) < plan.blocks),
        empty_(shared_address_of(base + static_cast<uint32_t>(offsetof(S, empty)),
                                 threadIdx.x % 32 % plan.blocks)) {}

  /// Takes part in a span without rows to multiply.
  __device__ void pass_span(int stages) {
    wait_turn(warpgroup_);
    pass_turn(warpgroup_);
    for (int i = 0; i < stages; ++i, ring_.advance()) {
      wait_stage();
      release(ring_.stage);
    }
  }

  /// acc = the products of a span of one or two stages.
  __device__ void multiply_span(int stages, Sums& acc) {
    wait_stage();
    wait_turn(warpgroup_);
    start_stage(acc, false);
    const int first = ring_.stage;
    ring_.advance();
    if (C::kSpan == 2 && stages == 2) {
      wait_stage();
      start_stage(acc, true);
      const int second = ring_.stage;
      ring_.advance();
      pass_turn(warpgroup_);
      wait_products<1>();
      release(first);
      wait_products();
      release(second);
    } else {
      pass_turn(warpgroup_);
      wait_products();
      release(first);
    }
  }

 private:
  __device__ void wait_stage() const {
    wait_barrier(full_ + ring_.stage * 8, ring_.phase);
    fence_for_products();
  }

  /// acc (+)= the products of a stage, under way.
  __device__ void start_stage(Sums& acc, bool add) const {
    const uint32_t a = operand(rows_ + ring_.stage * C::kStageBytes);
    const uint32_t b = operand(weights_ + ring_.stage * C::kStageBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      multiply<C::kProductColumns>(acc, a + 2 * k, b + 2 * k, add || k > 0);
    }
    commit_products();
  }

  /// The warp has read a stage: tells all blocks, which wait for that to fill it again.
  __device__ void release(int stage) const {
    __syncwarp();
    if (releases_) arrive_at(empty_ + stage * 8);
  }

  const int warpgroup_ = threadIdx.x / 128;
  const uint32_t rows_, weights_, full_;  // of the first stage
  const bool releases_;
  const uint32_t empty_;  // of the block that the lane tells
  Ring ring_{C::kStages};
};

}  // namespace moegate::dense_fc2::stream_k
