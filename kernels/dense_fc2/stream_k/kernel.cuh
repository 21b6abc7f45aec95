// SPDX-License-Identifier: Apache-2.0
// The main kernel of stream_k: a warpgroup fills stages with 128 of K of both operands; two
// multiply up to 256 of an expert's K at a time and add the products, times alpha, to the sums of
// their segment.
#pragma once

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/dense_fc2/stream_k/product.cuh"

namespace moegate::dense_fc2::stream_k {

using namespace cuda;

/// Which of a producer thread's rows have an alpha for an expert. Threads come in eights, which
/// copy the 16-byte pieces of the same rows, 16 apart; each reads alpha of one of them.
template <class C>
class RoutedRows {
 public:
  static constexpr int kCount = C::kRows / 16;  // of a thread

  __device__ RoutedRows(const DenseFc2Args& args, int first_row, int expert) {
    const int thread = threadIdx.x % 128, row = first_row + thread / 8 + thread % 8 * 16;
    there_ = thread % 8 < kCount && row < args.shape.tokens;
    alpha_ = args.alpha + int64_t{there_ ? row : 0} * args.shape.experts + expert;
    next_ = there_ ? __ldg(alpha_) : 0;
  }
  /// Bit i: row 16 * i. Of one expert after the other, read ahead by one; `more`: there is another.
  __device__ uint32_t next(bool more) {
    const uint32_t all = __ballot_sync(~0u, next_ != 0);
    ++alpha_;
    if (there_ && more) next_ = __ldg(alpha_);
    return all >> threadIdx.x % 32 / 8 * 8 & 0xff;
  }

 private:
  bool there_;
  const float* alpha_;
  float next_;
};

/// Fills the stages: weights, of which each block of a cluster copies a part to all of them, and
/// the rows that have an alpha. Others are zeros, which cost neither bandwidth nor much power; most
/// are zeros from the last time.
template <class C>
__device__ void fill_stages(const CUtensorMap* map, const Work& work, uint32_t base) {
  using S = Shared<C>;
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int thread = threadIdx.x - kConsumers, piece = thread % 8, rank = cluster_rank();
  const bool one_lane = elected(), starts = thread / 32 == 0 && one_lane;
  const int row = plan.first_row(lane_of(plan), rank), part = rank * plan.weight_copy();
  const uint8_t* rows = work.args.a + int64_t{row + thread / 8} * shape.k() + piece * 16;
  const uint32_t to = base + thread / 8 * kMoeGroup + (piece ^ thread / 8 % 8) * 16;
  const int64_t pitch = int64_t{16} * shape.k();
  // Weights are read once, or by every lane at about the same time.
  const uint64_t policy = plan.lanes == 1 ? evict_first() : evict_normal();
  static_assert(C::kStages <= 8);
  // A byte per stage: rows that are not zeros there.
  uint64_t stale = ((1u << RoutedRows<C>::kCount) - 1) * 0x0101010101010101u;
  Ring ring{C::kStages};
  for_each_segment(plan, [&](const Segment& segment) {
    const int column = plan.first_column(segment.tile) + part;
    RoutedRows<C> routed(work.args, row, segment.first);
    for (int e = segment.first; e < segment.last; ++e) {
      const uint32_t mask = routed.next(e + 1 < segment.last);
      for (int k = e * shape.inter; k < (e + 1) * shape.inter; k += kMoeGroup, ring.advance()) {
        const uint32_t full = base + static_cast<uint32_t>(offsetof(S, full)) + ring.stage * 8;
        const uint32_t stage = ring.stage * C::kStageBytes;
        wait_barrier(base + static_cast<uint32_t>(offsetof(S, empty)) + ring.stage * 8,
                     ring.phase ^ 1);
        if (starts) {
          const uint32_t weights = base + stage + C::kRowBytes + part * kMoeGroup;
          arrive_expecting(full, C::kWeightBytes);
          if (plan.blocks == 1) {
            copy_tile(weights, map, k, column, full, policy);
          } else {
            const auto all = static_cast<uint16_t>((1u << plan.blocks) - 1);
            copy_tile(weights, map, k, column, full, policy, all);
          }
        }
        const uint8_t* from = rows + k;
        for (uint32_t write = mask | (stale >> ring.stage * 8 & 0xff); write != 0;
             write &= write - 1) {
          const int i = __ffs(static_cast<int>(write)) - 1;
          copy_async<16>(to + stage + i * 16 * kMoeGroup, from + i * pitch, mask >> i & 1);
        }
        stale = (stale & ~(uint64_t{0xff} << ring.stage * 8)) | uint64_t{mask} << ring.stage * 8;
        arrive_after_copies(full);
      }
    }
  });
}

__device__ inline void store(float* to, float2 pair, uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v2.f32 [%0], {%1, %2}, %3;" ::"l"(to), "f"(pair.x),
               "f"(pair.y), "l"(policy)
               : "memory");
}

/// Writes a warpgroup's sums, of a thread's two rows `rows_left` and 8 fewer from the end on, to
/// the partial sums at `to`.
template <class C>
__device__ void write_partials(float* to, int rows_left, const typename Consumer<C>::Sums& sums) {
  const uint64_t policy = evict_last();  // sum_segments reads them
#pragma unroll
  for (int i = 0; i < C::kProductColumns / 2; i += 2) {
    const int down = i / 2 % 2 * 8;
    if (rows_left <= down) continue;
    store(to + down * C::kColumns + i / 4 * 8, make_float2(sums[i], sums[i + 1]), policy);
  }
}

/// Multiplies what comes, and writes partial sums.
template <class C>
__device__ void consume(const Work& work, uint32_t base) {
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32, rank = cluster_rank();
  const int row = (C::kRows == 128 ? warpgroup * 64 : 0) + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const int column = C::kRows == 128 ? 0 : warpgroup * C::kProductColumns;
  const int first_row = plan.first_row(lane_of(plan), rank);
  Consumer<C> consumer(base, plan);
  if (warpgroup == 1) pass_turn(1);
  for_each_segment(plan, [&](const Segment& segment) {
    Spans<C::kSpan> spans(shape, segment);
    if (first_row + row / 64 * 64 >= shape.tokens) {
      for (; spans.more(); spans.advance()) consumer.pass_span(spans.groups());
      return;
    }
    const int first_column = plan.first_column(segment.tile) + column;
    Factors<C> factors(work.args, first_row + row, first_column, spans);
    typename Consumer<C>::Sums sums = {};
    for (; spans.more(); spans.advance()) {
      typename Consumer<C>::Sums acc;
      consumer.multiply_span(spans.groups(), acc);
      factors.add(acc, sums);
      factors.advance();
    }
    const int64_t slot = plan.slot(lane_of(plan), cluster_of(plan), segment.tile, rank);
    write_partials<C>(work.partials + (slot * C::kRows + row) * C::kColumns + column + lane % 4 * 2,
                      shape.tokens - first_row - row, sums);
  });
}

template <int Rows, bool kBlockScales>
__global__ void __launch_bounds__(kThreads, 1)
    stream_k_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ Work work) {
  using C = Config<Rows, kBlockScales>;
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<Shared<C>>(raw);
  init_barriers(0, shared.full, kProducers + 1);
  init_barriers(1, shared.empty, kConsumers / 32 * work.plan.blocks);
  fence_barrier_init();
  allow_dependents();
  __syncthreads();
  cluster_arrive();
  cluster_wait();
  uint32_t base = shared_address(&shared);
  asm volatile("" : "+r"(base));  // kept, where the compiler would compute it every time
  if (threadIdx.x >= kConsumers) {
    leave_registers<kProducerRegisters>();
    fill_stages<C>(&map, work, base);
  } else {
    take_registers<kConsumerRegisters>();
    consume<C>(work, base);
  }
  // A block's stages and barriers are the others' to write to until all are done.
  cluster_arrive();
  cluster_wait();
}

}  // namespace moegate::dense_fc2::stream_k
