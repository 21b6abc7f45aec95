// SPDX-License-Identifier: Apache-2.0
// The warps that copy weights, in the order in which they are multiplied, of gate-up and of down
// without a break: no copy waits for an activation. A copier starts a stage in some 300 cycles,
// each wait and each division among them; that is about what memory takes for one, so that there
// are two, and little may be added here. Before that, the sorting of the routed rows.
#pragma once

#include "kernels/fused_moe/one_launch/shared.cuh"

namespace moegate::fused_moe::one_launch {

/// Sorts the routed rows by expert, by all warps of the block: lane l of each has the experts of
/// rows l, l + 32, ..., those of no row being kNoExpert. Rows of an expert ascend.
__device__ inline void sort_rows(const int32_t (&experts)[kRowsPerLane], const FusedMoeShape& shape,
                                 Octets& octets) {
  const int lane = threadIdx.x % 32, rows = shape.rows(), most = octet_rows(shape.tokens);
#pragma unroll 1
  for (int r = threadIdx.x / 32; r < rows; r += blockDim.x / 32) {
    const int held = r < 32 ? experts[0] : r < 64 ? experts[1] : experts[2];
    static_assert(kRowsPerLane == 3);
    const int expert = __shfl_sync(~0u, held, r % 32);
    int place = 0, earlier = 0;  // rows before r; of its expert
#pragma unroll
    for (int i = 0; i < kRowsPerLane; ++i) {
      place += __popc(__ballot_sync(~0u, experts[i] < expert));
      earlier += __popc(__ballot_sync(~0u, experts[i] == expert && lane + 32 * i < r));
    }
    if (lane != 0) continue;
    place += earlier;
    octets.row[place] = r;
    octets.begins[place] = (earlier & (most - 1)) == 0 ? expert : -1;
  }
}

/// Lists the octets of sorted rows, by one warp.
__device__ inline void find_octets(const FusedMoeShape& shape, Octets& octets) {
  const int lane = threadIdx.x % 32, rows = shape.rows();
  int count = 0;
#pragma unroll
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int at = lane + 32 * i, expert = at < rows ? octets.begins[at] : -1;
    if (at < rows) octets.token[at] = octets.row[at] / shape.topk;
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

/// Where a copier is, and the oldest of its copies that may be on its way. With a few tokens no
/// more than kMostInFlight stages are: of a whole ring some blocks' would come long before others',
/// for which all wait at the grid's barrier; and what the barrier asks of L2 would queue behind
/// them. With more tokens a copier has no time to look.
struct Copies {
  int copier;
  Ring next, oldest;
  int allowed;  // before it looks
};

/// One thread starts the copies of those of a tile's stages that are the copier's: of `bytes` each,
/// by copy(to, first group, barrier). `of`: what the first is.
template <class Copy>
__device__ void copy_tile(const Memory& m, StageOf of, int groups, int bytes, Copies& copies,
                          Copy copy) {
  Ring& ring = copies.next;
#pragma unroll 1
  for (int group = 0; group < groups; group += kStageGroups, ++of.chunk, ring.advance()) {
    if (ring.stage % kCopiers != copies.copier) continue;
    if (copies.allowed > 0) {
      --copies.allowed;
    } else {
      wait_barrier(&m.shared.full[copies.oldest.stage], copies.oldest.phase);
      copies.oldest.advance(kCopiers);
    }
    uint64_t* full = &m.shared.full[ring.stage];
    wait_barrier(&m.shared.empty[ring.stage], ring.phase ^ 1);
    m.shared.stages[ring.stage] = of;
    arrive_expecting(full, bytes);
    copy(m.stages + ring.stage * kStageBytes, group, full);
  }
}

/// Gate-up's, panel by panel.
__device__ inline void copy_up(const Maps& maps, const Work& work, const Memory& m, const Cut& cut,
                               Copies& copies) {
  const int groups = work.args.shape.hidden / kMoeGroup;
#pragma unroll 1
  for (int panel = cut.panels.begin; panel < cut.panels.end; ++panel) {
    const int octet = panel / cut.panels_per_octet, expert = m.shared.octets.expert[octet];
    const int column = (panel - octet * cut.panels_per_octet) * kOctet;
    const int index = panel - cut.panels.begin, use = index / work.plan.up_sets;
    const StageOf of{panel, octet, 0, static_cast<int16_t>(index - use * work.plan.up_sets), use};
    copy_tile(m, of, groups, kStageBytes, copies, [&](uint8_t* to, int group, uint64_t* full) {
      copy_up_stage(to, maps.up, expert, column, group, full);
    });
  }
}

/// Down's: so many strips at once, octet by octet, so that blocks read an expert at about the same
/// time, and each of them on.
__device__ inline void copy_down(const Maps& maps, const Work& work, const Memory& m,
                                 const Cut& cut, Copies& copies) {
  const Octets& octets = m.shared.octets;
  const int groups = work.args.shape.inter / kMoeGroup, units = work.args.shape.hidden / kOctet;
  const int at_once = 2 * work.plan.strips_at_once;
  int turn = 0;
#pragma unroll 1
  for (int first = cut.columns.begin; first < cut.columns.end; first += at_once, ++turn) {
    const int end = min(first + at_once, cut.columns.end);
#pragma unroll 1
    for (int octet = 0; octet < octets.count; ++octet) {
      const int row = octets.expert[octet] * units;
      StageOf of{first, octet, 0, static_cast<int16_t>(turn % 2 * work.plan.strips_at_once),
                 turn / 2};
#pragma unroll 1
      for (; of.unit < end; of.unit += 2, ++of.set) {
        const bool lone = of.unit + 1 == cut.columns.end;
        const CUtensorMap* map = lone ? maps.down_half : maps.down;
        copy_tile(m, of, groups, lone ? kHalfBytes : kStageBytes, copies,
                  [&](uint8_t* to, int group, uint64_t* full) {
                    copy_down_stage(to, map, row + of.unit, group, full);
                  });
      }
    }
  }
}

__device__ inline void produce(const Maps& maps, const Work& work, const Memory& m, int copier) {
  const bool one = elected();
  if (copier == 0) find_octets(work.args.shape, m.shared.octets);
  if (!one) return;
  if (copier == 0) {
    m.shared.cut = Cut(work.args.shape, m.shared.octets.count, blockIdx.x, gridDim.x);
    arrive_barrier(&m.shared.listed);
  } else {
    wait_barrier(&m.shared.listed, 0);
  }
  const Cut cut = m.shared.cut;
  const Ring first{work.plan.stages, copier};
  const int allowed = work.args.shape.tokens <= kFewTokens ? kMostInFlight / kCopiers : kNoLimit;
  Copies copies{copier, {work.plan.stages}, first, allowed};
  copy_up(maps, work, m, cut, copies);
  copy_down(maps, work, m, cut, copies);
}

}  // namespace moegate::fused_moe::one_launch
