// SPDX-License-Identifier: Apache-2.0
// The warps that multiply: gate-up with the activation, the grid's barrier, the quantisation of all
// rows by every block, down with the sum over a token's experts. Every order of additions is that
// of K or of the experts, whatever the batch.
#pragma once

#include "kernels/cuda/named_barriers.cuh"
#include "kernels/fused_moe/one_launch/grid_barrier.cuh"
#include "kernels/fused_moe/one_launch/multiply.cuh"
#include "kernels/silu_mul_quant/quantise.cuh"

namespace moegate::fused_moe::one_launch {

constexpr int kConsumers = kWarps * 32;

__device__ inline void sync_consumers() {
  sync_barrier<kConsumers>(kConsumerBarrier);
}

__device__ inline float rounded_to_bf16(float value) {
  return bits_float(pack_bf16(value, 0) << 16);
}

/// Starts copies of the scale factors of x and of the routing weights.
__device__ inline void copy_factors(const FusedMoeArgs& args, const Memory& m) {
  const int scales = args.shape.tokens * (args.shape.hidden / kMoeGroup), thread = threadIdx.x;
#pragma unroll 1
  for (int i = thread; i < scales; i += kConsumers)
    copy_async<4>(shared_address(m.row_scales + i), args.x_scales + i, true);
  if (thread < args.shape.rows())
    copy_async<4>(shared_address(m.shared.routing + thread), args.topk_weights + thread, true);
}

/// And copies of the scale factors of all weights of the block, which are few: panels that follow
/// each other share them. Loads stage by stage would queue behind the weights. Two groups of
/// copies, the second of down's.
__device__ inline void copy_weight_scales(const FusedMoeArgs& args, const Memory& m,
                                          const Cut& cut) {
  const int up_groups = args.shape.hidden / kMoeGroup, down_groups = args.shape.inter / kMoeGroup;
  const Octets& octets = m.shared.octets;
  const int ups = cut.up_blocks.size() * 2 * up_groups;
#pragma unroll 1
  for (int i = threadIdx.x; i < ups; i += kConsumers) {
    const int row = i / up_groups, block = cut.up_blocks.begin + row / 2;
    const int octet = block / down_groups, half = octets.expert[octet] * 2 + row % 2;
    const int64_t from = int64_t{half} * down_groups + block - octet * down_groups;
    copy_async<4>(shared_address(m.up_scales + i),
                  args.w1_scales + from * up_groups + i - row * up_groups, true);
  }
  commit_copies();
  const int blocks = cut.down_blocks.size(), downs = octets.count * blocks * down_groups;
#pragma unroll 1
  for (int i = threadIdx.x; i < downs; i += kConsumers) {
    const int row = i / down_groups, octet = row / blocks;
    const int64_t from =
        int64_t{octets.expert[octet]} * up_groups + cut.down_blocks.begin + row - octet * blocks;
    copy_async<4>(shared_address(m.down_scales + i),
                  args.w2_scales + from * down_groups + i - row * down_groups, true);
  }
  commit_copies();
}

/// The activations of a panel: columns [column, column + 8) of the octet's rows.
__device__ inline void finish_panel(const Work& work, const Memory& m, const Parts& parts,
                                    int octet, int column) {
  const Octets& octets = m.shared.octets;
  const int first = octets.first[octet], count = octets.first[octet + 1] - first;
  const int lane = threadIdx.x % 32, row = lane % kTileRows;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    // Even chunks in the lower lanes, odd ones in the upper.
    const float* from = parts.line(i) + row;
    float sum = 0;
#pragma unroll 4
    for (int chunk = lane / kTileRows; chunk < parts.chunks(); chunk += 2)
      sum += from[chunk * kTileRows];
    const float h = rounded_to_bf16(sum + __shfl_xor_sync(~0u, sum, kTileRows));
    const float up = __shfl_down_sync(~0u, h, kOctet);
    if (lane < kOctet) {
      work.activations[octets.row[first + i] * work.args.shape.inter + column + lane] =
          silu_mul_quant::activation(h, up);
    }
  }
  parts.leave();
}

/// The sums over experts of columns [column, column + width) of the output.
__device__ inline void finish_strip(const Work& work, const Memory& m, const Parts& parts,
                                    int column, int width) {
  constexpr int kAhead = 4;  // rows whose sums are loaded at a time
  const FusedMoeShape& shape = work.args.shape;
  const int lane = threadIdx.x % 32, at = lane % kTileRows;
#pragma unroll 1
  for (int t = lane / kTileRows; t < shape.tokens; t += 2) {
    float sum = 0;
    const int end = (t + 1) * shape.topk;
#pragma unroll 1
    for (int row = t * shape.topk; row < end; row += kAhead) {
      float products[kAhead] = {};
#pragma unroll 1
      for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
#pragma unroll
        for (int j = 0; j < kAhead; ++j)
          if (row + j < end) products[j] += parts.line(row + j)[chunk * kTileRows + at];
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j)
        if (row + j < end) sum += rounded_to_bf16(products[j] * m.shared.routing[row + j]);
    }
    if (at < width) work.args.out[int64_t{t} * shape.hidden + column + at] = float_to_bf16(sum);
  }
  parts.leave();
}

/// Where a warp is: in every kWarps-th place of the ring. A place is always the same warp's,
/// because the parity of its barrier could not tell a later use from the one before, whose copies
/// may be the slower ones.
struct Walk {
  Ring ring;
  int stage;  // of the block's, in that place

  __device__ void advance() {
    const int left = ring.stages - ring.stage;
    const int step = left > kWarps ? kWarps : left + static_cast<int>(threadIdx.x) / 32;
    ring.advance(step);
    stage += step;
  }
};

/// Scale factors of the 8 rows of weights from `unit` on and of the 8 others of its tile, by
/// groups of K.
__device__ inline WeightScales scales_of(const Memory& m, const Cut& cut, bool down, int octet,
                                         int unit, int groups) {
  const int block = unit / kBlockUnits;
  if (!down) {
    const float* low = m.up_scales + (block - cut.up_blocks.begin) * 2 * groups;
    return {low, low + groups};
  }
  const float* of_octet =
      m.down_scales + (octet * cut.down_blocks.size() - cut.down_blocks.begin) * groups;
  const int other = min(unit + 1, cut.columns.end - 1) / kBlockUnits;
  return {of_octet + block * groups, of_octet + other * groups};
}

/// Multiplies this warp's stages of a phase. One code serves both, so that down's need not come
/// from memory behind the barrier.
__device__ inline void multiply(bool down, const Work& work, const Memory& m, const Cut& cut,
                                Walk& walk) {
  const FusedMoeShape& shape = work.args.shape;
  const Octets& octets = m.shared.octets;
  const int k = down ? shape.inter : shape.hidden, groups = k / kMoeGroup;
  const int chunks = down ? cut.down_chunks : cut.up_chunks;
  const int set_stages = down ? octets.count * chunks : chunks;
  const int end = cut.up_stages() + (down ? cut.strips() * set_stages : 0);
  const int part = down ? work.plan.down_part : work.plan.up_part;
#pragma unroll 1
  for (; walk.stage < end; walk.advance()) {
    wait_barrier(&m.shared.full[walk.ring.stage], walk.ring.phase);
    const StageOf of = m.shared.stages[walk.ring.stage];
    const Columns columns(m, down ? octets.row : octets.token, of.octet, k);
    const WeightScales scales = scales_of(m, cut, down, of.octet, of.unit, groups);
    float sums[4];
    multiply_stage(m, walk.ring.stage, columns, scales, of.chunk * kStageGroups, groups, sums);
    arrive_warp(&m.shared.empty[walk.ring.stage]);

    const int first = octets.first[of.octet], count = octets.first[of.octet + 1] - first;
    const auto line_of = [&](int column) {
      return column >= count ? -1 : down ? octets.row[first + column] : column;
    };
    const int even = threadIdx.x % 4 * 2;
    const Parts parts(m, of, part, chunks);
    if (!parts.put(sums, line_of(even), line_of(even + 1), of.chunk, set_stages)) continue;
    if (down) {
      finish_strip(work, m, parts, of.unit * kOctet, min(cut.columns.end - of.unit, 2) * kOctet);
    } else {
      finish_panel(work, m, parts, of.octet, (of.unit - of.octet * cut.panels_per_octet) * kOctet);
    }
  }
}

/// All rows' activations, quantised, in place of x: two groups of 128 by a warp at a time. Blocks
/// begin at different groups: L2 has each line in one place.
__device__ inline void quantise_rows(const Work& work, const Memory& m) {
  constexpr int kLanes = silu_mul_quant::kLanes, kAtOnce = kConsumers / kLanes, kAhead = 2;
  const FusedMoeShape& shape = work.args.shape;
  const int in_row = shape.inter / kMoeGroup, groups = shape.rows() * in_row;
  const int shift = blockIdx.x * groups / gridDim.x;
  const int lane = threadIdx.x % kLanes, of_warp = threadIdx.x / 32 * 2;
#pragma unroll 1
  for (int first = of_warp; first < groups; first += kAhead * kAtOnce) {
    int group[kAhead];  // negative: none
    float4 values[kAhead][2] = {};
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int index = first + threadIdx.x / kLanes % 2 + i * kAtOnce;
      group[i] = index >= groups          ? -1
                 : index + shift < groups ? index + shift
                                          : index + shift - groups;
      if (group[i] < 0) continue;
      const auto* from =
          reinterpret_cast<const float4*>(work.activations + group[i] * kMoeGroup + lane * 8);
      values[i][0] = __ldcg(from);  // not from L1, where poison may be
      values[i][1] = __ldcg(from + 1);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (group[i] < 0) break;
      uint8_t* to = m.rows + group[i] * kMoeGroup + group[i] / in_row * kRowGap + lane * 8;
      const float4 &a = values[i][0], &b = values[i][1];
      silu_mul_quant::quantise({a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, to,
                               m.row_scales + group[i]);
    }
  }
}

/// Starts the copies of the rows of x, by one thread.
__device__ inline void copy_rows(const Work& work, const Memory& m) {
  const int tokens = work.args.shape.tokens, hidden = work.args.shape.hidden;
  arrive_expecting(&m.shared.rows_full, tokens * hidden);
#pragma unroll 1
  for (int t = 0; t < tokens; ++t)
    copy_bytes(m.rows + t * (hidden + kRowGap), work.args.x + t * hidden, hidden,
               &m.shared.rows_full);
}

__device__ inline void consume(const Work& work, const Memory& m, uint32_t* arrivals) {
  const uint32_t arrived = threadIdx.x == 0 ? look_at_grid_barrier(arrivals) : 0;
  const bool one = elected();
  if (one && threadIdx.x / 32 == 0) copy_rows(work, m);
  copy_factors(work.args, m);
  wait_barrier(&m.shared.listed, 0);
  const Cut& cut = m.shared.cut;
  copy_weight_scales(work.args, m, cut);
  wait_copies<1>();
  sync_consumers();
  wait_barrier(&m.shared.rows_full, 0);
  const int warp = threadIdx.x / 32;
  Walk walk{{work.plan.stages}, warp};
  walk.ring.advance(warp);
#pragma unroll 1
  for (int phase = 0; phase < 2; ++phase) {
    if (phase == 1) {
      sync_consumers();
      if (threadIdx.x < kMostSets) m.shared.left[threadIdx.x] = 0;
      if (threadIdx.x == 0) pass_grid_barrier(arrivals, arrived);
      wait_copies<0>();
      sync_consumers();
      quantise_rows(work, m);
      sync_consumers();
    }
    multiply(phase == 1, work, m, cut, walk);
  }
}

}  // namespace moegate::fused_moe::one_launch
