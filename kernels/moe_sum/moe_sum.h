// SPDX-License-Identifier: Apache-2.0
// Operator moe_sum: the end of a fused MoE layer. A token's k rows, already multiplied by their
// routing weights, become one:
//
//   out[t, i] = bf16(scale * (y[t*k, i] + y[t*k + 1, i] + ... + y[t*k + k - 1, i]))
//
// in fp32, in this order, rounded once. `scale` is DeepSeek's routed scaling factor where the
// router did not apply it.
#pragma once

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"

namespace moegate::moe_sum {

struct MoeSumShape {
  int tokens;   // T
  int topk;     // k
  int hidden;   // H
  float scale;  // of the sum

  /// Reads and checks the case's parameters; throws Error(usage).
  static MoeSumShape of(const Case& c);
};

/// Everything a launch needs, by value; pointers are device pointers.
struct MoeSumArgs {
  const uint16_t* y;  // [T*k, H] bf16
  uint16_t* out;      // [T, H] bf16
  MoeSumShape shape;
};

/// The expected output of some tokens, whose k rows each are `y`.
std::vector<double> moe_sum_truth(const std::vector<uint16_t>& y, const MoeSumShape& shape);

class MoeSum : public Problem {
 public:
  static constexpr const char* kOp = "moe_sum";
  // Measured: 1.66e-3, worst row 1.9e-3 from H = 200 on: the output's own rounding. No element of
  // suites tiny and smoke is anything but the truth rounded.
  static constexpr Tolerance kTolerance{
      .rtol = 4e-3, .atol = 1e-2, .rel_l2 = 3e-3, .row = 9e-3, .scale = 2e-3, .between = 0};
  /// Elements of y up to which the truth is the whole output, and tokens that stand for more.
  static constexpr int64_t kWholeTruth = int64_t{1} << 24, kSampledTokens = 256;

  static void validate(const Case& c);
  MoeSum(Device& device, const Case& c, int64_t most_elements = kWholeTruth);
  MoeSumArgs args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;

  const MoeSumShape shape;

 private:
  bool redraw(uint64_t change) override;
  std::vector<double> truth(const std::vector<int64_t>& tokens) const;
  void swap_slots();
  void drop_slot();

  Tensor& y_;
  Tensor& out_;
  std::vector<int64_t> tokens_;  // that are compared
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

}  // namespace moegate::moe_sum
