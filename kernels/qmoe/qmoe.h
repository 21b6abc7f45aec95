// SPDX-License-Identifier: Apache-2.0
// Operators qmoe_fc1_swiglu and qmoe_fc2: the two matrix products of a weight-only int4 MoE layer
// at decode, as ONNX Runtime's QMoE runs them (microsoft/onnxruntime PR 29167). R = T*k routed
// rows, sorted by expert; each is multiplied by its expert's matrix:
//
//   h[r, n] = sum_k x[source(r), k] * (q[e(r), n, k] - 8) * s[e(r), n, k / b]  (+ bias[e(r), n])
//
// - fc1 (K = hidden, N = 2*inter): source(r) is the row's token; gate and up columns alternate,
//   g = min(h[r, 2j], limit), u = clamp(h[r, 2j + 1], -limit, limit),
//   out[r, j] = g * sigmoid(alpha * g) * (u + beta)
// - fc2 (K = inter, N = hidden): source(r) = r and out = h. Router weights and the sum over a
//   token's rows come later (kernels/qmoe_layer).
//
// q is unsigned, [E, N, K/2] bytes with the even k in the low nibble; s is per channel (b = K) or
// per block of 32, 64 or 128 along K, in the activation type. How a kernel wants the weights laid
// out is its own affair (KernelSpec::prepare). Rounded once, to the activation type.
#pragma once

#include "harness/kernel/redraw.h"
#include "kernels/qmoe/operands.h"

namespace moegate::qmoe {

/// The expected output [R, outputs] in plain double code.
std::vector<double> qmoe_truth(const QmoeShape& shape, const QmoeInputs& inputs);

/// What both operators are; they differ in their shape alone.
class Qmoe : public Problem {
 public:
  // Measured with fp32 and exact accumulation: fp16 relative L2 2.5e-4, worst row 3.8e-4;
  // bf16 2.2e-3 and 3.3e-3 (3.0e-3 on an output of 48 elements). Nearly all of it is the output's
  // own rounding. Variants that accumulate in fp16 state a factor.
  static constexpr Tolerance kTolerance16{
      .rtol = 2e-3, .atol = 4e-3, .rel_l2 = 4e-4, .row = 1.2e-3, .scale = 1e-3, .between = 0};
  static constexpr Tolerance kToleranceBf16{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 4e-3, .row = 1.2e-2, .scale = 2e-3, .between = 0};

  Qmoe(Device& device, const Case& c, const QmoeShape& shape);
  QmoeArgs args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const QmoeShape shape;

 private:
  bool redraw(uint64_t change) override;
  QmoeInputs inputs(bool transposed = false) const;
  void swap_experts();
  void drop_first_token();
  void transpose_scales();

  Tensor& x_;
  Tensor& row_source_;
  Tensor& row_expert_;
  ExpertWeights weights_;
  Tensor& out_;
  DrawnRows<int32_t> drawn_experts_;
  DrawnRows<uint16_t> drawn_x_;
  std::vector<int32_t> tokens_, sources_, experts_;  // per row
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
};

struct QmoeFc1 : Qmoe {
  static constexpr const char* kOp = "qmoe_fc1_swiglu";
  static QmoeShape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  QmoeFc1(Device& device, const Case& c) : Qmoe(device, c, shape_of(c)) {}
};

struct QmoeFc2 : Qmoe {
  static constexpr const char* kOp = "qmoe_fc2";
  static QmoeShape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  QmoeFc2(Device& device, const Case& c) : Qmoe(device, c, shape_of(c)) {}
};

}  // namespace moegate::qmoe
