// SPDX-License-Identifier: Apache-2.0
// Operator qmoe_layer: a whole weight-only int4 MoE layer at decode, from the router's logits on,
// as ONNX Runtime's QMoE runs it (microsoft/onnxruntime PR 29167). Token t goes to the k experts of
// its largest logits (equal ones: the lower expert); of each such row r with expert e:
//
//   w[r] = exp(logits[t, e]) / sum of that over the k chosen              (topk_sort: topk_softmax)
//   a[r] = swiglu(x[t] * W1[e] + b1[e]), rounded to the activation type   (qmoe_fc1_swiglu)
//   y[r] = a[r] * W2[e] + b2[e], rounded to the activation type           (qmoe_fc2)
//   out[t] = sum of w[r] * y[r] over the token's k rows
//
// w is the softmax over all experts, renormalised over the chosen: normalize_routing_weights = 1 of
// ONNX Runtime, and what gpt-oss does. Weights and sums are fp32, out is rounded once, to the
// activation type. What stands between the parts is scratch memory, not an operand.
#pragma once

#include "harness/kernel/redraw.h"
#include "kernels/qmoe/qmoe.h"
#include "kernels/topk_sort/topk_sort.h"

namespace moegate::qmoe_layer {

struct QmoeLayerShape {
  qmoe::QmoeShape fc1, fc2;  // differ in K, N and what follows fc1

  /// Reads and checks the case's parameters; throws Error(usage).
  static QmoeLayerShape of(const Case& c);

  int tokens() const { return fc1.tokens; }    // T
  int experts() const { return fc1.experts; }  // E
  int topk() const { return fc1.topk; }        // k
  int hidden() const { return fc1.k; }         // H
  int inter() const { return fc2.k; }          // I
  int rows() const { return fc1.rows(); }      // R
  DType dtype() const { return fc1.dtype; }
  topk_sort::TopkSortShape routing() const;
};

/// Everything a launch needs, by value; pointers are device pointers.
struct QmoeLayerArgs {
  const uint16_t* logits;  // [T, E]
  qmoe::QmoeArgs fc1;      // x [T, H], weights, shape; the rest is a variant's
  qmoe::QmoeArgs fc2;      // weights, shape; the rest is a variant's
  uint16_t* out;           // [T, H]
  QmoeLayerShape shape;
};

/// Which experts compute a token, and what their rows count, in descending order of logits.
struct Assignment {
  std::vector<int32_t> experts;  // [T, k]
  std::vector<double> weights;   // [T, k]
};

/// The inputs on the host as exact values, weights of the experts that have rows only.
struct QmoeLayerInputs {
  std::vector<float> x;  // [T, H]
  Assignment assignment;
  std::map<int32_t, qmoe::QmoeInputs::Expert> fc1, fc2;
};

/// `logits` [T, E] are the exact values of the narrow type.
Assignment assigned(const QmoeLayerShape& shape, const std::vector<float>& logits);
/// The expected output [T, H] in plain double code, rounded where the layer is but for the end.
std::vector<double> qmoe_layer_truth(const QmoeLayerShape& shape, const QmoeLayerInputs& inputs);

class QmoeLayer : public Problem {
 public:
  static constexpr const char* kOp = "qmoe_layer";
  // Measured on the host, eight shapes up to gpt-oss's: fp16 relative L2 2.1e-4, worst row 2.5e-4;
  // bf16 1.7e-3 and 2.0e-3. That is the output's own rounding.
  static constexpr Tolerance kTolerance16{
      .rtol = 2e-3, .atol = 4e-3, .rel_l2 = 4e-4, .row = 1.2e-3, .scale = 1e-3, .between = 0};
  static constexpr Tolerance kToleranceBf16{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 4e-3, .row = 1.2e-2, .scale = 2e-3, .between = 0};
  /// In units of 2^-digits of the type and over the root of k * I, what one activation adds to its
  /// token's row that fp32 sums round the other way. Measured on 40 seeds: at k * I = 384 in fp16
  /// 20 % of a row are then not the truth rounded, for which a third of this would do.
  static constexpr double kActivationAnew = 3;
  /// In units of 2^-digits, what that adds to one element at the edges, where activations are up to
  /// 56 and their sum may be next to nothing.
  static constexpr double kEdgeAnew = 32;
  /// Of variants that sum both products in fp16, the factor of such a product. Their arithmetic on
  /// the host: relative L2 1.3e-3, worst row 1.8e-3, of which all but the output's own rounding is
  /// from in between.
  static constexpr double kSumsInHalf = 8, kRoundedInHalf = 3e-3;
  /// Of variants that multiply x and a as two digits of int8. Their arithmetic on the host: fp16
  /// 3.2e-4, worst row 5.9e-4, 3e-4 from in between; bf16 2e-3, 3.3e-3, 1.3e-3.
  static constexpr double kInDigits = 2, kRoundedInDigits = 1e-3;

  static void validate(const Case& c);
  QmoeLayer(Device& device, const Case& c);
  QmoeLayerArgs args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const QmoeLayerShape shape;

 private:
  /// What the truth is wrong in on purpose.
  enum class Fault { none, experts_swapped, token_dropped, scales_transposed };

  bool redraw(uint64_t change) override;
  Tolerance own_ceilings() const;
  qmoe::ExpertWeights weights_of(const std::string& name, const qmoe::QmoeShape& product);
  QmoeLayerInputs inputs(Fault fault) const;
  void spoil(Fault fault);

  Tensor& x_;
  Tensor& logits_;
  qmoe::ExpertWeights fc1_, fc2_;
  Tensor& out_;
  DrawnRows<uint16_t> drawn_logits_, drawn_x_;
  Assignment assignment_;
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
};

}  // namespace moegate::qmoe_layer
