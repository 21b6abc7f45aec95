// SPDX-License-Identifier: Apache-2.0
// Operator moe_align: the (token, slot) pairs of an MoE layer grouped by expert, each group padded
// to whole blocks of BM rows, so that every block of a grouped GEMM belongs to one expert. Contract
// of moe_align_block_size in vLLM, SGLang and aphrodite.
//
// Row r = t*k + j of R = T*k stands for slot j of token t. A row whose id is no expert of this rank
// (negative, or E and beyond) is skipped. Groups follow each other in order of experts; an expert
// without rows has none. The order of the rows inside a group is free. With `rank` the ids are
// those of a layer's routing as a rank counts its experts (expert_rank.h), of which it has E.
#pragma once

#include "harness/kernel/expert_rank.h"
#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "harness/kernel/routing.h"

namespace moegate::moe_align {

/// What the ids look like: all of this rank, or one in eight foreign: -1, E, and far beyond.
enum class IdData : int { valid, some_skipped };

struct MoeAlignShape {
  int tokens;   // T
  int experts;  // E, of this rank
  int topk;     // k
  int block;    // BM
  IdData data;

  /// Reads and checks the case's parameters; throws Error(usage).
  static MoeAlignShape of(const Case& c);

  MOEGATE_HD int rows() const { return tokens * topk; }  // R
  /// Of sorted_token_ids, P: R + E*(BM - 1), but no more than a block for every row.
  MOEGATE_HD int capacity() const {
    const int padded = rows() + experts * (block - 1);
    return rows() < experts && rows() * block < padded ? rows() * block : padded;
  }
  /// Of expert_ids.
  MOEGATE_HD int blocks() const { return (capacity() + block - 1) / block; }
  /// Whether `id` names an expert of this rank.
  MOEGATE_HD bool has(int32_t id) const {
    return static_cast<uint32_t>(id) < static_cast<uint32_t>(experts);
  }
};

/// Everything a launch needs, by value; pointers are device pointers.
struct MoeAlignArgs {
  const int32_t* topk_ids;          // [T, k]
  int32_t* sorted_token_ids;        // [capacity]: rows by expert; padding is R
  int32_t* expert_ids;              // [blocks]: expert of each block
  int32_t* num_tokens_post_padded;  // [1]: rows with padding; what lies beyond is undefined
  MoeAlignShape shape;
  int32_t unused = 0;  // in place of padding, whose bytes nobody writes
};
static_assert(std::has_unique_object_representations_v<MoeAlignArgs>, "a row's identity");

/// The expected outputs as far as they are defined; each expert's rows ascend.
struct MoeAlignTruth {
  std::vector<int32_t> sorted_token_ids, expert_ids, num_tokens_post_padded;
  bool empty() const { return num_tokens_post_padded.empty(); }
};

MoeAlignTruth moe_align_truth(const MoeAlignShape& shape, const std::vector<int32_t>& topk_ids);

class MoeAlign : public Problem {
 public:
  static constexpr const char* kOp = "moe_align";

  static void validate(const Case& c);
  MoeAlign(Device& device, const Case& c);
  MoeAlignArgs args();

  /// Compares, and hashes, with each expert's rows in ascending order.
  Checked check() const override;
  bool find_truth() override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const MoeAlignShape shape;

 private:
  bool redraw(uint64_t change) override;
  std::vector<int32_t> sorted_within_experts(std::vector<int32_t> rows) const;
  void swap_experts();
  void drop_first_token();

  ExpertRank rank_;
  Tensor& topk_ids_;
  Tensor& sorted_token_ids_;
  Tensor& expert_ids_;
  Tensor& num_tokens_post_padded_;
  DrawnRows<int32_t> drawn_ids_;  // of the layer
  std::vector<int32_t> ids_now_;  // of this rank
  Skew skew_;                     // of the first ones
  MoeAlignTruth truth_;
  ByChange<MoeAlignTruth> truths_;
};

}  // namespace moegate::moe_align
