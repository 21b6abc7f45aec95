// SPDX-License-Identifier: Apache-2.0
// How one_launch cuts a layer into stages of weights, deals them to its blocks, and lays out a
// block's shared memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/fused_moe/fused_moe.h"

namespace moegate::fused_moe::one_launch {

// What may be tuned; nothing else depends on their values.
constexpr int kWarps = 14;         // that multiply
constexpr int kCopiers = 2;        // warps that copy; with them each quarter of an SM has four
constexpr int kStageGroups = 2;    // groups of 128 along K of a stage
constexpr int kMostStages = 54;    // of a block's ring
constexpr int kMostInFlight = 14;  // stages that are on their way, up to kFewTokens
constexpr int kFewTokens = 2;
constexpr int kNoLimit = std::numeric_limits<int>::max();
constexpr int kPartsBytes = 32 << 10;  // of sums of strips that are multiplied at once
constexpr bool kCooperative = true;    // the driver refuses a grid that does not run all at once

constexpr int kRowsPerLane = 3;
constexpr int kMostRows = 32 * kRowsPerLane;     // R: a warp holds their experts
constexpr int kOctet = 8;                        // routed rows of one expert: operand b
constexpr int kBlockUnits = kMoeGroup / kOctet;  // rows of weights that share a scale factor
constexpr int kTileRows = 2 * kOctet;            // rows of weights: operand a
constexpr int kGroupBytes = kOctet * kMoeGroup;
constexpr int kHalfBytes = kStageGroups * kGroupBytes;  // 8 rows of weights
constexpr int kStageBytes = 2 * kHalfBytes;
constexpr int kMostSets = 16;
/// Bytes between rows of x and q in shared memory, so that two rows at the same k lie in different
/// banks.
constexpr int kRowGap = 16;

constexpr int kNoExpert = std::numeric_limits<int>::max();  // of a row behind the last

/// Routed rows, sorted by expert, in octets: up to eight of one expert, in shared memory.
struct Octets {
  int count;
  int first[kMostRows + 1];  // sorted row at which each begins; [count]: R
  int expert[kMostRows];     // of each octet
  int row[kMostRows];        // r of each sorted row
  int token[kMostRows];      // and its token
  int begins[kMostRows];     // scratch: the expert of a sorted row that begins an octet, else -1
};

// A place's barriers tell two uses apart, and a ring has a place for each warp at least.
static_assert(kMostInFlight <= kWarps && kMostInFlight % kCopiers == 0);

/// Rows that an octet has at most, given the tokens: a power of two.
MOEGATE_HD inline int octet_rows(int tokens) {
  return tokens > 4 ? kOctet : tokens > 2 ? 4 : tokens;
}

/// Units [begin, end) of a block.
struct Range {
  int begin, end;

  MOEGATE_HD int size() const { return end - begin; }
};

/// Blocks of 128 that so many units of 8 in a row touch at most.
MOEGATE_HD inline int most_blocks(int units) {
  return (units + 2 * kBlockUnits - 2) / kBlockUnits;
}
/// Those that units touch.
MOEGATE_HD inline Range blocks_of(const Range& units) {
  const int first = units.begin / kBlockUnits;
  return {first, units.size() > 0 ? (units.end - 1) / kBlockUnits + 1 : first};
}

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
  Range panels, columns;         // in units of 8 columns
  Range up_blocks, down_blocks;  // of 128, which share scale factors

  MOEGATE_HD Cut(const FusedMoeShape& s, int octets, int block, int blocks)
      : up_chunks(chunks_of(s.hidden)),
        down_chunks(chunks_of(s.inter)),
        panels_per_octet(s.inter / kOctet),
        panels(share_of(octets * panels_per_octet, block, blocks)),
        columns(share_of(s.hidden / kOctet, block, blocks)),
        up_blocks(blocks_of(panels)),
        down_blocks(blocks_of(columns)) {}

  MOEGATE_HD int up_stages() const { return panels.size() * up_chunks; }
  MOEGATE_HD int strips() const { return (columns.size() + 1) / 2; }
};

/// What a stage's weights are. Who copies them writes it down for who multiplies them, so that only
/// one has to divide.
struct alignas(16) StageOf {
  int unit;       // of their first eight rows, among all octets' panels or the output's
  int octet;      // whose rows they are for
  int16_t chunk;  // of K
  int16_t set;    // for their partial sums
  int use;        // of the set
};

/// Shared memory beside the arrays whose sizes the shape decides.
struct Shared {
  uint64_t full[kMostStages], empty[kMostStages];
  uint64_t rows_full, listed;  // x and the octets are there
  int arrived[kMostSets];      // stages whose sums are in a set of partial sums
  int left[kMostSets];         // uses of a set that are over
  StageOf stages[kMostStages];
  float routing[kMostRows];  // routing weights by r
  Octets octets;
  Cut cut;  // here rather than in registers, of which the multiplying warps have none to spare
};

/// Sizes, in the order in which they lie in shared memory; Shared is the last. No padding.
struct Plan {
  int stages;
  int row_bytes;   // of all rows of x, then of q
  int row_scales;  // scale factors of all these rows
  int up_scales;   // of the block's weights
  int down_scales;
  int strips_at_once;      // that an octet is multiplied with before the next one is
  int up_sets, down_sets;  // of partial sums
  int up_part, down_part;  // floats of a set
  int parts;               // of all sets
  int shared_bytes;
};

/// `available`: bytes of shared memory for each of so many blocks. Fewer stages than kWarps: it
/// does not fit.
inline Plan make_plan(const FusedMoeShape& s, int blocks, int64_t available) {
  const int octet = octet_rows(s.tokens);
  Plan plan{};
  plan.row_bytes = std::max(s.tokens * (s.hidden + kRowGap), s.rows() * (s.inter + kRowGap));
  // To 16 bytes.
  plan.row_scales = (std::max(s.tokens * s.hidden, s.rows() * s.inter) / kMoeGroup + 3) / 4 * 4;
  const int panels = s.rows() * (s.inter / kOctet), columns = s.hidden / kOctet;
  plan.up_scales = most_blocks((panels + blocks - 1) / blocks) * 2 * (s.hidden / kMoeGroup);
  plan.down_scales =
      most_blocks((columns + blocks - 1) / blocks) * s.rows() * (s.inter / kMoeGroup);
  plan.down_scales += plan.down_scales % 2;  // to 8 bytes
  plan.up_part = kTileRows * octet * chunks_of(s.hidden);
  plan.down_part = kTileRows * s.rows() * chunks_of(s.inter);
  const int strips = ((columns + blocks - 1) / blocks + 1) / 2;
  const int most = std::clamp(kPartsBytes / 4 / plan.down_part, 1, kMostSets / 2);
  plan.strips_at_once = std::min(most, strips);
  // Where there are more, the next ones need not wait for these.
  plan.down_sets = most < strips ? 2 * most : strips;
  plan.up_sets = 4 * 4 * plan.up_part <= kPartsBytes / 2 ? 4 : 2;
  plan.parts = std::max(plan.up_sets * plan.up_part, plan.down_sets * plan.down_part);
  const int64_t rest =
      plan.row_bytes +
      4 * (int64_t{plan.row_scales} + plan.up_scales + plan.down_scales + plan.parts) +
      static_cast<int64_t>(sizeof(Shared));
  plan.stages =
      static_cast<int>(std::clamp<int64_t>((available - rest) / kStageBytes, 0, kMostStages));
  // A place of the ring is always the same copier's, as it is always the same other warp's.
  plan.stages -= plan.stages % kCopiers;
  plan.shared_bytes = static_cast<int>(plan.stages * int64_t{kStageBytes} + rest);
  return plan;
}

}  // namespace moegate::fused_moe::one_launch
