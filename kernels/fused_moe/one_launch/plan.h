// SPDX-License-Identifier: Apache-2.0
// How one_launch cuts a layer into stages of weights, deals them to its blocks, and lays out a
// block's shared memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/fused_moe/fused_moe.h"

namespace moegate::fused_moe::one_launch {

// What may be tuned; nothing else depends on their values.
constexpr int kWarps = 14;             // that multiply
constexpr int kCopiers = 2;            // warps that copy; with them each quarter of an SM has four
constexpr int kStageGroups = 2;        // groups of 128 along K of a stage
constexpr int kMostStages = 54;        // of a block's ring
constexpr int kPartsBytes = 16 << 10;  // up to which there are four sets of partial sums, else two
constexpr bool kCooperative = true;    // the driver refuses a grid that does not run all at once

constexpr int kRowsPerLane = 3;
constexpr int kMostRows = 32 * kRowsPerLane;  // R: one warp sorts them
constexpr int kOctet = 8;                     // routed rows of one expert: operand b
constexpr int kTileRows = 2 * kOctet;         // rows of weights: operand a
constexpr int kGroupBytes = kOctet * kMoeGroup;
constexpr int kHalfBytes = kStageGroups * kGroupBytes;  // 8 rows of weights
constexpr int kStageBytes = 2 * kHalfBytes;
constexpr int kStageScales = 2 * kStageGroups;  // of its weights, in the same order
constexpr int kMostParts = 4;
/// Bytes between rows of x and q in shared memory, so that two rows at the same k lie in different
/// banks.
constexpr int kRowGap = 16;

/// Routed rows, sorted by expert, in octets: up to eight of one expert, in shared memory.
struct Octets {
  int count;
  int first[kMostRows + 1];  // sorted row at which each begins; [count]: R
  int expert[kMostRows];     // of each octet
  int row[kMostRows];        // r of each sorted row
  int token[kMostRows];      // and its token
  int begins[kMostRows];     // scratch: the expert of a sorted row that begins an octet, else -1
};

/// Shared memory beside the arrays whose sizes the shape decides.
struct Shared {
  uint64_t full[kMostStages], empty[kMostStages];
  uint64_t rows_full, listed;  // x and the octets are there
  int arrived[kMostParts];     // stages whose sums are in a set of partial sums
  int left[kMostParts];        // uses of a set that are over
  float routing[kMostRows];    // routing weights by r
  Octets octets;
};

/// Units [begin, end) of a block.
struct Range {
  int begin, end;

  MOEGATE_HD int size() const { return end - begin; }
};

/// Equal shares within one unit.
MOEGATE_HD inline Range share_of(int units, int block, int blocks) {
  return {static_cast<int>(int64_t{units} * block / blocks),
          static_cast<int>(int64_t{units} * (block + 1) / blocks)};
}

/// Stages along K, of one tile of weights.
MOEGATE_HD inline int chunks_of(int k) {
  return (k / kMoeGroup + kStageGroups - 1) / kStageGroups;
}

/// The work of a block. Gate-up's unit is a panel: 8 columns of the activation of an octet, whose
/// tile is 8 rows of gates and the 8 of ups. Panels of an octet follow each other. Down's unit is 8
/// columns of the output for all octets; two of a block make a strip, a lone one half of it. Both
/// kinds are cut along K into stages, each the work of one warp.
struct Cut {
  int up_chunks, down_chunks;  // stages of a tile
  int panels_per_octet;
  Range panels, columns;  // in units of 8 columns

  MOEGATE_HD Cut(const FusedMoeShape& s, int octets, int block, int blocks)
      : up_chunks(chunks_of(s.hidden)),
        down_chunks(chunks_of(s.inter)),
        panels_per_octet(s.inter / kOctet),
        panels(share_of(octets * panels_per_octet, block, blocks)),
        columns(share_of(s.hidden / kOctet, block, blocks)) {}

  MOEGATE_HD int strips() const { return (columns.size() + 1) / 2; }
};

/// Sizes, in the order in which they lie in shared memory; Shared is the last. No padding.
struct Plan {
  int stages;
  int row_bytes;   // of all rows of x, then of q
  int row_scales;  // scale factors of all these rows
  int log_parts;   // of the number of sets of partial sums
  int part_floats;
  int shared_bytes;
};

/// `available`: bytes of shared memory for a block. Fewer stages than kWarps: it does not fit.
inline Plan make_plan(const FusedMoeShape& s, int64_t available) {
  const int octet = std::min(kOctet, s.tokens);
  Plan plan{};
  plan.row_bytes = std::max(s.tokens * (s.hidden + kRowGap), s.rows() * (s.inter + kRowGap));
  // To 16 bytes.
  plan.row_scales = (std::max(s.tokens * s.hidden, s.rows() * s.inter) / kMoeGroup + 3) / 4 * 4;
  plan.part_floats =
      kTileRows * std::max(octet * chunks_of(s.hidden), s.rows() * chunks_of(s.inter));
  const auto part_bytes = static_cast<int64_t>(sizeof(float)) * plan.part_floats;
  plan.log_parts = part_bytes * kMostParts <= kPartsBytes ? 2 : 1;
  const int64_t rest = plan.row_bytes + 4 * int64_t{plan.row_scales} +
                       (part_bytes << plan.log_parts) + static_cast<int64_t>(sizeof(Shared));
  constexpr int64_t kStage = kStageBytes + kStageScales * sizeof(float);
  plan.stages = static_cast<int>(std::clamp<int64_t>((available - rest) / kStage, 0, kMostStages));
  // A place of the ring is always the same copier's, as it is always the same other warp's.
  plan.stages -= plan.stages % kCopiers;
  plan.shared_bytes = static_cast<int>(plan.stages * kStage + rest);
  return plan;
}

}  // namespace moegate::fused_moe::one_launch
