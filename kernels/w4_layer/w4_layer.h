// SPDX-License-Identifier: Apache-2.0
// Operator w4_layer: a whole MoE layer with weights of 4 bits behind its router, as gpt-oss is
// shipped (MXFP4) or Kimi-K2 (int4). For token t and each of its k experts e = topk_ids[t, j], row
// r = t*k + j:
//
//   a[r] = bf16(swiglu(x[t] * W1[e] + b1[e]))                  (w4_gate_up)
//   y[r] = bf16(topk_weights[t, j] * (a[r] * W2[e] + b2[e]))   (w4_down)
//   out[t] = bf16(y[t*k] + ... + y[t*k + k - 1])               (moe_sum)
//
// The parts' headers define them. A variant is a sequence of their kernels; what stands between is
// scratch memory, not an operand.
#pragma once

#include "harness/kernel/redraw.h"
#include "kernels/check/layer_truth.h"
#include "kernels/check/truth_of_rows.h"
#include "kernels/moe_align/moe_align.h"
#include "kernels/moe_sum/moe_sum.h"
#include "kernels/w4_moe/weights.h"

namespace moegate::w4_layer {

using w4_moe::W4Args;
using w4_moe::W4Scaling;
using w4_moe::W4Shape;

struct W4LayerShape {
  W4Shape gate_up, down;

  /// Reads and checks the case's parameters; throws Error(usage).
  static W4LayerShape of(const Case& c);

  int tokens() const { return gate_up.tokens; }  // T
  int topk() const { return gate_up.topk; }      // k
  int rows() const { return gate_up.rows(); }    // R
  int hidden() const { return gate_up.k; }       // H
  int inter() const { return down.k; }           // I
};

/// The parts of a launch, one behind the other. What they hand on lies in the workspace.
struct Steps {
  moe_align::MoeAlignArgs align;
  int32_t* next;  // [E], scratch of moe_align
  W4Args gate_up, down;
  moe_sum::MoeSumArgs sum;
  std::byte* end;  // of what they need of the workspace
};

class W4Layer : public Problem {
 public:
  static constexpr const char* kOp = "w4_layer";
  // The output's own rounding is 1.65e-3. Measured on the host at H = I = 768: 1.7e-3, worst row
  // 1.9e-3.
  static constexpr Tolerance kTolerance{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 4e-3, .row = 1.2e-2, .scale = 2e-3, .between = 0};
  // Of int4 weights that are rounded to bf16 in both products. Measured there: 3e-3, 3.4e-3.
  static constexpr Tolerance kRounded{
      .rtol = 1.5e-2, .atol = 5e-2, .rel_l2 = 6e-3, .row = 1.8e-2, .scale = 3e-3, .between = 4e-3};
  /// In units of 2^-8 and over the root of k * I, what one activation that fp32 sums round the
  /// other way adds to its token's row.
  static constexpr double kActivationAnew = 3;
  /// Over the same root, what that adds to one element: activations are up to 56, weights up to
  /// eight times their mean.
  static constexpr double kElementAnew = 0.5;
  /// Multiply-adds up to which the truth is the whole output, and those of the tokens that stand
  /// for a larger one (two at least).
  static constexpr double kWholeTruth = 5e8, kSampleProducts = 3e8;

  static void validate(const Case& c);
  W4Layer(Device& device, const Case& c, double most_products = kWholeTruth);
  /// check() then compares by what this scaling of int4 costs.
  Steps steps(W4Scaling scaling = W4Scaling::exact);
  /// What the steps need.
  static size_t workspace_bytes(const W4LayerShape& shape);

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& tokens) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;
  /// Puts the output in place that a variant with this mistake in both products leaves; for check()
  /// to reject.
  void slip(w4_moe::W4Slip slip);

  const W4LayerShape shape;

 private:
  bool redraw(uint64_t change) override;
  w4_moe::WeightTensors::Make make_weights();
  void fill_operands(uint64_t seed);
  Tolerance own_ceilings() const;
  check::Assignment assignment() const;
  std::vector<double> truth(const std::vector<int64_t>& tokens, const check::Assignment& assigned,
                            w4_moe::W4Slip slip) const;
  std::vector<double> expert_rows(int32_t expert, const std::vector<int64_t>& rows,
                                  const std::vector<float>& weights, w4_moe::W4Slip slip) const;
  void put(const std::vector<double>& wrong);

  Tensor& x_;
  Tensor& topk_ids_;
  Tensor& topk_weights_;
  w4_moe::WeightTensors w1_, w2_;
  Tensor& out_;
  DrawnRows<int32_t> drawn_experts_;
  std::vector<int32_t> experts_;  // [R]
  std::vector<int64_t> tokens_;   // that are compared
  W4Scaling scaling_ = W4Scaling::exact;
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

}  // namespace moegate::w4_layer
