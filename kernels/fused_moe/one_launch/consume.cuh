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

/// Of x, while the first weights are on their way.
__device__ inline void load_factors(const FusedMoeArgs& args, const Memory& m) {
  const int scales = args.shape.tokens * (args.shape.hidden / kMoeGroup), thread = threadIdx.x;
#pragma unroll 1
  for (int i = thread; i < scales; i += kConsumers) m.row_scales[i] = __ldg(args.x_scales + i);
  if (thread < args.shape.rows()) m.shared.routing[thread] = __ldg(args.topk_weights + thread);
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

/// What tells gate-up and down apart: K, the sets of partial sums of a block, stages of a set and
/// of a tile, the first set, and where the rows of operand b lie. One code serves both, so that
/// down's need not come from memory behind the barrier.
struct Phase {
  bool down;
  int k, sets, set_stages, chunks, first_set;
  const int* source;  // of sorted rows
};

__device__ inline Phase phase_of(bool down, const Work& work, const Memory& m, const Cut& cut) {
  const FusedMoeShape& shape = work.args.shape;
  const Octets& octets = m.shared.octets;
  if (!down)
    return {false, shape.hidden, cut.panels.size(), cut.up_chunks, cut.up_chunks, 0, octets.token};
  return {true,
          shape.inter,
          cut.strips(),
          octets.count * cut.down_chunks,
          cut.down_chunks,
          cut.panels.size(),
          octets.row};
}

/// Multiplies this warp's stages of a phase, of which the first is the `in_set`-th: those in every
/// kWarps-th place of the ring. A place is always the same warp's, because the parity of its
/// barrier could not tell a later use from the one before, whose copies may be the slower ones.
/// What follows the last of its stages is the first of the next phase, and returned.
__device__ inline int multiply(const Phase& phase, const Work& work, const Memory& m,
                               const Cut& cut, int in_set, Ring& ring) {
  const Octets& octets = m.shared.octets;
  const auto next = [&] {
    const int left = ring.stages - ring.stage;
    const int step = left > kWarps ? kWarps : left + static_cast<int>(threadIdx.x) / 32;
    ring.advance(step);
    return step;
  };
#pragma unroll 1
  for (int set = 0;; in_set += next()) {
#pragma unroll 1
    for (; in_set >= phase.set_stages && set < phase.sets; ++set) in_set -= phase.set_stages;
    if (set >= phase.sets) return in_set;
    const int tile = in_set / phase.chunks, chunk = in_set - tile * phase.chunks;
    const int panel = cut.panels.begin + set, up_octet = panel / cut.panels_per_octet;
    const int octet = phase.down ? tile : up_octet;
    const Columns columns(m, phase.source, octet, phase.k);
    float sums[4];
    wait_barrier(&m.shared.full[ring.stage], ring.phase);
    multiply_stage(m, ring.stage, columns, chunk * kStageGroups, phase.k / kMoeGroup, sums);
    arrive_warp(&m.shared.empty[ring.stage]);

    const int first = octets.first[octet], count = octets.first[octet + 1] - first;
    const auto line_of = [&](int column) {
      return column >= count ? -1 : phase.down ? octets.row[first + column] : column;
    };
    const int even = threadIdx.x % 4 * 2;
    const Parts parts(m, work.plan, phase.first_set + set, phase.chunks);
    if (!parts.put(sums, line_of(even), line_of(even + 1), chunk, phase.set_stages)) continue;
    if (phase.down) {
      const int unit = cut.columns.begin + 2 * set, left = cut.columns.end - unit;
      finish_strip(work, m, parts, unit * kOctet, min(left, 2) * kOctet);
    } else {
      finish_panel(work, m, parts, octet, (panel - octet * cut.panels_per_octet) * kOctet);
    }
  }
}

/// All rows' activations, quantised, in place of x; by half warps.
__device__ inline void quantise_rows(const Work& work, const Memory& m) {
  constexpr int kLanes = silu_mul_quant::kLanes, kAtOnce = kConsumers / kLanes, kAhead = 2;
  const FusedMoeShape& shape = work.args.shape;
  const int in_row = shape.inter / kMoeGroup, groups = shape.rows() * in_row;
  const int lane = threadIdx.x % kLanes;
#pragma unroll 1
  for (int first = threadIdx.x / kLanes; first < groups; first += kAhead * kAtOnce) {
    float4 values[kAhead][2];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int group = first + i * kAtOnce;
      if (group >= groups) break;
      const auto* from =
          reinterpret_cast<const float4*>(work.activations + group * kMoeGroup + lane * 8);
      values[i][0] = __ldcg(from);  // not from L1, where poison may be
      values[i][1] = __ldcg(from + 1);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int group = first + i * kAtOnce;
      if (group >= groups) break;
      uint8_t* to = m.rows + group * kMoeGroup + group / in_row * kRowGap + lane * 8;
      const float4 &a = values[i][0], &b = values[i][1];
      silu_mul_quant::quantise({a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, to, m.row_scales + group);
    }
  }
}

__device__ inline void consume(const Work& work, const Memory& m, uint32_t* arrivals) {
  load_factors(work.args, m);
  sync_consumers();
  wait_barrier(&m.shared.listed, 0);
  wait_barrier(&m.shared.rows_full, 0);
  const Cut cut(work.args.shape, m.shared.octets.count, blockIdx.x, gridDim.x);
  const int warp = threadIdx.x / 32;
  Ring ring{work.plan.stages};
  ring.advance(warp);
  int in_set = warp;
#pragma unroll 1
  for (int phase = 0; phase < 2; ++phase) {
    if (phase == 1) {
      sync_consumers();
      if (threadIdx.x == 0) pass_grid_barrier(arrivals);
      sync_consumers();
      quantise_rows(work, m);
      sync_consumers();
    }
    in_set = multiply(phase_of(phase == 1, work, m, cut), work, m, cut, in_set, ring);
  }
}

}  // namespace moegate::fused_moe::one_launch
