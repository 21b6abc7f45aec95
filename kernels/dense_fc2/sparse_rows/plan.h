// SPDX-License-Identifier: Apache-2.0
// How sparse_rows divides its work and its shared memory. Plain host code.
#pragma once

#include <algorithm>

#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2::sparse_rows {

constexpr int kMostColumns = 64;  // the M of wgmma
constexpr int kChunkRows = 16;    // gathered rows of a product: its N
constexpr int kMaxStages = 16;
constexpr int kLists = 4;         // batches of lists
constexpr int kListWords = 128;   // of a batch
constexpr int kMostTokens = 512;  // a batch then has the lists of eight experts
constexpr int kAlignment = 1024;  // of a swizzled operand
constexpr int kWarpgroups = 3;    // that multiply chunks, in turn
constexpr int kWarpgroupWarps = 4;
constexpr int kMostGatherWarps = 6;  // that fill stages with rows, likewise

/// Those who take turns await only their own chunks. A barrier tells one phase from the next, not
/// from the one after that: when a warp comes to wait for a stage, all but the last use of it must
/// be over. They are where stages are handed on in order, and a warp's last chunk was a round of
/// the ring ago or less: there are at least as many stages as take turns.
constexpr int kFewestStages = kWarpgroups;

/// Some rows of an expert and a span of its K, and what goes with them.
struct alignas(16) Chunk {
  // By the warp that gathers; read in pairs.
  int tokens[kChunkRows];  // M where there is no row
  float alphas[kChunkRows];
  float a_scales[kChunkRows];  // in the block-scaled form
  float b_scales[2];           // likewise, of the two groups that the columns can be in
  // The order, by the warp that plans.
  int rows;                    // 0: there are no more chunks
  int last;                    // of the span
  int weights, weights_phase;  // place in the ring of weights
  int expert, group;           // first group of 128 along K
  int first;                   // of the expert's rows
  uint32_t list[kMostTokens / 32];
};

struct Shared {
  /// Of each expert of a batch a bit per token, set where alpha is not 0.
  uint32_t lists[kLists][kListWords];
  uint64_t lists_full[kLists], lists_empty[kLists];
  uint64_t weights_full[kMaxStages], weights_empty[kMaxStages];
  uint64_t ordered[kMaxStages], rows_full[kMaxStages], rows_empty[kMaxStages];
  uint64_t turns[kWarpgroups][kWarpgroupWarps];  // at the sums of a warp's columns
};

struct Plan {
  int span;       // groups of 128 along K, of an expert, that are multiplied before they are added
  int columns;    // of a block: rows of b
  int pitch;      // floats from a token's sums to the next one's
  int log_words;  // of an expert's list
  int stages;     // of weights, and of rows
  int gather_warps;
  size_t shared_bytes;

  MOEGATE_HD int words() const { return 1 << log_words; }
  MOEGATE_HD int batch() const { return kListWords >> log_words; }  // experts
};

inline Plan make_plan(const DenseFc2Shape& s, const DeviceFacts& device) {
  Plan plan{};
  const int processors = std::max(device.processors, 1);
  const int share = (s.hidden + processors - 1) / processors;
  plan.columns = std::min((share + 7) / 8 * 8, kMostColumns);
  // An odd number of eights: eight columns of tokens that differ modulo 4 are in different banks.
  plan.pitch = plan.columns % 16 == 0 ? plan.columns + 8 : plan.columns;
  while (plan.words() * 32 < s.tokens) ++plan.log_words;
  plan.span = s.block_scales || s.expert_groups() % 2 != 0 ? 1 : 2;
  const int64_t stage_bytes =
      plan.span * (plan.columns + kChunkRows) * kMoeGroup + int{sizeof(Chunk)};
  const int64_t other_bytes =
      kAlignment + int64_t{sizeof(Shared)} + (int64_t{s.tokens} + 1) * plan.pitch * 4;
  const int64_t fit = (device.shared_per_block - other_bytes) / stage_bytes;
  plan.stages = static_cast<int>(std::clamp<int64_t>(fit, 0, kMaxStages));
  plan.gather_warps = std::min(plan.stages, kMostGatherWarps);
  plan.shared_bytes = static_cast<size_t>(other_bytes + plan.stages * stage_bytes);
  return plan;
}

/// The most tokens that sparse_rows takes of such a shape.
inline int most_tokens(DenseFc2Shape s, const DeviceFacts& device) {
  s.tokens = kMostTokens;
  while (s.tokens > 0 && make_plan(s, device).stages < kFewestStages) --s.tokens;
  return s.tokens;
}

}  // namespace moegate::dense_fc2::sparse_rows
