// SPDX-License-Identifier: Apache-2.0
// Operator topk_sort: the routing step of an MoE layer. From router logits to everything the
// grouped GEMMs need: the k experts of every token with their weights, sorted by expert and padded
// to whole blocks, and a zeroed output buffer. Contract of AITER's moe_sorting (ROCm/aiter PR
// 3526).
//
// Scoring, per token (ties: the lower expert index wins; slots in descending order of score):
// - softmax: p = softmax(logits); top-k of p; weight p, divided by the sum of the chosen if renorm
// - topk_softmax: top-k of the logits; weight = softmax over the chosen (gpt-oss)
// - noaux_tc: s = sigmoid(logits), b = s + bias; a group's score is the sum of its two largest b;
//   keep topk_groups groups; top-k of b among them; weight s, divided by the sum of the chosen if
//   renorm (DeepSeek-V3)
//
// Every weight is multiplied by `scale`. A NaN logit counts as -infinity; -infinity is chosen only
// when fewer than k finite logits exist, lowest index first, with weight 0.
#pragma once

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"

namespace moegate::topk_sort {

enum class Scoring : int { softmax, topk_softmax, noaux_tc };
/// What the logits look like: random, many exact ties, or rows with too few finite values.
enum class LogitData : int { normal, ties, few_finite, nan };

struct TopkSortShape {
  int tokens;               // T
  int experts;              // E
  int topk;                 // k, at most 16
  int hidden;               // H: moe_buf is [T, H] bf16
  int unit;                 // U: rows per block that every expert's tokens are padded to
  int groups, topk_groups;  // noaux_tc; 1, 1 otherwise
  Scoring scoring;
  bool renorm;
  float scale;
  DType dtype;  // of the logits
  LogitData data;

  /// Reads and checks the case's parameters; throws Error(usage).
  static TopkSortShape of(const Case& c);
  /// Capacity of sorted_ids and sorted_weights: T*k + E*U - k.
  int64_t capacity() const { return int64_t{tokens} * topk + int64_t{experts} * unit - topk; }
  /// Capacity of sorted_expert_ids.
  int64_t blocks() const { return (capacity() + unit - 1) / unit; }
};

/// Everything a launch needs, by value; pointers are device pointers.
struct TopkSortArgs {
  const void* logits;          // [T, E] of dtype, row-major, contiguous
  const float* bias;           // [E]; null unless noaux_tc
  int32_t* sorted_ids;         // [capacity]: slot << 24 | token; padding is k << 24 | T
  float* sorted_weights;       // [capacity]; padding is 0
  int32_t* sorted_expert_ids;  // [blocks]: expert of each block of U rows
  int32_t* num_valid;          // [2]: padded rows in all, T
  void* moe_buf;               // [T, H] bf16: all zero
  int64_t moe_buf_bytes;       // a multiple of 2; the pointer is 256-byte aligned
  TopkSortShape shape;
};

/// The expected outputs, in double. Entries at or beyond num_valid[0] are undefined and not stored.
struct TopkSortTruth {
  std::vector<int32_t> topk_ids;  // [T, k]
  std::vector<double> topk_weights;
  std::vector<int32_t> sorted_ids, sorted_expert_ids, num_valid;
  std::vector<double> sorted_weights;
  bool empty() const { return num_valid.empty(); }
};

/// Routes and sorts in plain double code. `logits` are the exact values of the narrow type.
TopkSortTruth topk_sort_truth(const TopkSortShape& shape, const std::vector<float>& logits,
                              const std::vector<float>& bias);

/// Whether a token's noaux_tc selection hangs on differences below 1e-5, which fp32 arithmetic may
/// decide either way. Equal scores from equal inputs do not count: the tie rule decides those.
bool selection_is_ambiguous(const TopkSortShape& shape, const float* logits, const float* bias);

class TopkSort : public Problem {
 public:
  static constexpr const char* kOp = "topk_sort";
  /// Of the weights; integers are exact. The sum of k fp32 terms stays far below: 1.4e-7 measured.
  static constexpr Tolerance kTolerance{
      .rtol = 1e-5, .atol = 1e-6, .rel_l2 = 1e-5, .row = 3e-5, .scale = 1e-5};

  static void validate(const Case& c);
  TopkSort(Device& device, const Case& c);
  TopkSortArgs args();

  Checked check() const override;
  bool find_truth() override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const TopkSortShape shape;

 private:
  bool redraw(uint64_t change) override;
  void swap_experts();
  void drop_token(int32_t token);

  Tensor& logits_;
  Tensor* bias_;
  Tensor& sorted_ids_;
  Tensor& sorted_weights_;
  Tensor& sorted_expert_ids_;
  Tensor& num_valid_;
  Tensor& moe_buf_;
  std::vector<float> biases_;
  DrawnRows<float> drawn_logits_;
  std::vector<float> logits_now_;
  TopkSortTruth truth_;
  ByChange<TopkSortTruth> truths_;
};

}  // namespace moegate::topk_sort
