// SPDX-License-Identifier: Apache-2.0
// The warps that copy: x, then weights in the order in which they are multiplied, of gate-up and
// of down without a break. No copy waits for an activation. One warp starts a stage in some 400
// cycles, too slowly for memory, so the copiers take stages in turn.
#pragma once

#include "kernels/fused_moe/one_launch/shared.cuh"

namespace moegate::fused_moe::one_launch {

/// Sorts the routed rows by expert, by one warp: lane l has the experts of rows l, l + 32, ... Rows
/// of an expert ascend. `most`: rows of an octet.
__device__ inline void find_octets(const int32_t (&experts)[kRowsPerLane],
                                   const FusedMoeShape& shape, int most, Octets& octets) {
  const int lane = threadIdx.x % 32, rows = shape.rows();
  int place[kRowsPerLane] = {},
      earlier[kRowsPerLane] = {};  // rows before the lane's, of its expert
#pragma unroll 4
  for (int r = 0; r < rows; ++r) {
    const int held = r < 32 ? experts[0] : r < 64 ? experts[1] : experts[2];
    static_assert(kRowsPerLane == 3);
    const int expert = __shfl_sync(~0u, held, r % 32);
#pragma unroll
    for (int i = 0; i < kRowsPerLane; ++i) {
      const bool same = expert == experts[i] && r < lane + 32 * i;
      earlier[i] += same;
      place[i] += same || expert < experts[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int row = lane + 32 * i;
    if (row >= rows) continue;
    octets.row[place[i]] = row;
    octets.token[place[i]] = row / shape.topk;
    octets.begins[place[i]] = earlier[i] % most == 0 ? experts[i] : -1;
  }
  __syncwarp();
  int count = 0;
#pragma unroll
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int at = lane + 32 * i, expert = at < rows ? octets.begins[at] : -1;
    const uint32_t all = __ballot_sync(~0u, expert >= 0);
    const int octet = count + __popc(all & ((1u << lane) - 1));
    if (expert >= 0) {
      octets.first[octet] = at;
      octets.expert[octet] = expert;
    }
    count += __popc(all);
  }
  if (lane == 0) {
    octets.count = count;
    octets.first[count] = rows;
  }
  __syncwarp();
}

/// A tile of weights, whose halves are eight rows each: where they and their scale factors begin.
struct Tile {
  const CUtensorMap* map;
  int low, high;                          // rows of all experts' weights; high < 0: there is none
  const float *low_scales, *high_scales;  // of all groups of K
  int groups;
};

/// Starts the copies of a tile's stages that are the copier's, by a warp of which `one` lane is
/// elected.
__device__ inline void copy_tile(const Memory& m, const Tile& tile, int copier, bool one,
                                 Ring& ring) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int group = 0; group < tile.groups; group += kStageGroups, ring.advance()) {
    if (ring.stage % kCopiers != copier) continue;
    uint64_t* full = &m.shared.full[ring.stage];
    uint8_t* to = m.stages + ring.stage * kStageBytes;
    wait_barrier(&m.shared.empty[ring.stage], ring.phase ^ 1);
    __syncwarp();
    if (one) {
      arrive_expecting(full, tile.high < 0 ? kHalfBytes : kStageBytes);
      copy_half(to, tile.map, tile.low, group, full);
      if (tile.high >= 0) copy_half(to + kHalfBytes, tile.map, tile.high, group, full);
    }
    if (lane < kStageScales) {
      const int at = group + lane % kStageGroups;
      const bool upper = lane >= kStageGroups;
      const bool there = at < tile.groups && !(upper && tile.high < 0);
      copy_async<4>(shared_address(m.stage_scales + ring.stage * kStageScales + lane),
                    (upper ? tile.high_scales : tile.low_scales) + (there ? at : 0), there);
      arrive_after_copies(full);
    }
  }
}

/// The rows of x, and the octets; `experts` as for find_octets().
__device__ inline void list_rows(const Work& work, const Memory& m, bool one,
                                 const int32_t (&experts)[kRowsPerLane]) {
  const FusedMoeShape& shape = work.args.shape;
  const int hidden = shape.hidden;
  if (one) arrive_expecting(&m.shared.rows_full, shape.tokens * hidden);
  __syncwarp();
  for (int t = threadIdx.x % 32; t < shape.tokens; t += 32)
    copy_bytes(m.rows + t * (hidden + kRowGap), work.args.x + t * hidden, hidden,
               &m.shared.rows_full);
  find_octets(experts, shape, min(kOctet, shape.tokens), m.shared.octets);
  if (one) arrive_barrier(&m.shared.listed);
}

__device__ inline void produce(const CUtensorMap* up, const CUtensorMap* down, const Work& work,
                               const Memory& m, int copier,
                               const int32_t (&experts)[kRowsPerLane]) {
  const bool one = elected();
  if (copier == 0) {
    list_rows(work, m, one, experts);
  } else {
    wait_barrier(&m.shared.listed, 0);
  }
  const FusedMoeArgs& args = work.args;
  const FusedMoeShape& shape = args.shape;
  const int hidden = shape.hidden, inter = shape.inter;
  const Octets& octets = m.shared.octets;
  const Cut cut(shape, octets.count, blockIdx.x, gridDim.x);
  Ring ring{work.plan.stages};
  const int up_groups = hidden / kMoeGroup, down_groups = inter / kMoeGroup;
  int octet = cut.panels.begin / cut.panels_per_octet;
  int column = (cut.panels.begin - octet * cut.panels_per_octet) * kOctet;
#pragma unroll 1
  for (int panel = cut.panels.begin; panel < cut.panels.end; ++panel, column += kOctet) {
    if (column == inter) {
      column = 0;
      ++octet;
    }
    const int expert = octets.expert[octet], gate = expert * 2 * inter + column;
    const float* scales =
        args.w1_scales +
        (int64_t{expert} * 2 * down_groups + column / kMoeGroup) * up_groups;  // I/128 blocks each
    copy_tile(
        m, {up, gate, gate + inter, scales, scales + int64_t{down_groups} * up_groups, up_groups},
        copier, one, ring);
  }
#pragma unroll 1
  for (int unit = cut.columns.begin; unit < cut.columns.end; unit += 2) {
    const bool lone = unit + 1 == cut.columns.end;
#pragma unroll 1
    for (int i = 0; i < octets.count; ++i) {
      const int expert = octets.expert[i], row = expert * hidden + unit * kOctet;
      const float* scales = args.w2_scales + int64_t{expert} * up_groups * down_groups;
      const auto scales_of = [&](int of) {
        return scales + int64_t{of} * kOctet / kMoeGroup * down_groups;
      };
      copy_tile(m,
                {down, row, lone ? -1 : row + kOctet, scales_of(unit),
                 scales_of(lone ? unit : unit + 1), down_groups},
                copier, one, ring);
    }
  }
}

}  // namespace moegate::fused_moe::one_launch
