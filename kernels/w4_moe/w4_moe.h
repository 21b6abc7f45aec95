// SPDX-License-Identifier: Apache-2.0
// Operators w4_gate_up and w4_down: the two grouped GEMMs of a fused MoE layer with weights of 4
// bits and bf16 activations. R = T*k routed rows; row r = t*k + j is token t's j-th expert e(r),
// with routing weight w[r]:
//
//   h[r, n] = b[e(r), n] + sum_k x[x(r), k] * value(codes[e(r), n, k]) * scale(e(r), n, k / group)
//
// - gate_up (K = hidden, N = 2*inter, x(r) = r / k): rows of W1 alternate, gate 2i and up 2i + 1.
//   g = min(h[r, 2i], limit), u = clamp(h[r, 2i+1], -limit, limit),
//   out[r, i] = g * sigmoid(alpha * g) * (u + beta)
// - down (K = inter, N = hidden, x(r) = r): out[r, n] = w[r] * h[r, n]
//
// The low nibble of a byte is the even k.
// - mxfp4 (OCP Microscaling Formats, 1.0): a code is e2m1: sign, two bits of exponent, one of
//   fraction; 0, .5, 1, 1.5, 2, 3, 4, 6. A scale is e8m0, 2^(byte - 127), 255 is NaN; a group is 32
//   of K. gpt-oss is shipped so: alpha 1.702, beta 1, limit 7 (gpt_oss/torch/model.py).
// - int4 (Kimi-K2, symmetric GPTQ): a code q is unsigned and means q - 8, a scale is bf16, a group
//   is 32, 64 or 128 of K; with or without b. All of it means the same in kernels/qmoe, whose fc2
//   has no w.
//
// Rounded once, to bf16. Every variant starts from the outputs of moe_align for blocks of BM rows
// (aligned_rows.h).
#pragma once

#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"
#include "kernels/w4_moe/weights.h"

namespace moegate::w4_moe {

/// Parameters of the products and of a layer of both, with `own` behind them.
std::vector<Param> layer_params(std::vector<Param> own);
std::vector<Param> swiglu_params();
bool has_bias(const Case& c);
/// Whether experts have so few rows on average that other kernels are the fastest:
/// reports/gallery/nvidia-h100-int4.md, of the layer nvidia-h100-mxfp4.md.
bool has_few_rows(const Case& c);

class W4Moe : public Problem {
 public:
  // The output's own rounding is 1.65e-3; weights are exact, sums in fp32 cost 1e-6.
  static constexpr Tolerance kTolerance{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 3e-3, .row = 9e-3, .scale = 2e-3, .between = 0};
  // Of int4 weights that are rounded to bf16: an error of 1.5e-3 of a sum. In gate_up this is 2e-3
  // of the output, and 60 % of its elements are not the truth rounded; in down 1.1e-3 to 1.5e-3
  // (with and without bias) and 31 to 42 %. Where a gate is near 0 the other factor is up to 8, of
  // an error that does not depend on the gate: of 1e5 elements the worst were off by 0.1.
  static constexpr Tolerance kRoundedGateUp{.rtol = 1.5e-2,
                                            .atol = 0.2,
                                            .rel_l2 = 4.5e-3,
                                            .row = 1.35e-2,
                                            .scale = 3e-3,
                                            .between = 3e-3};
  static constexpr Tolerance kRoundedDown{.rtol = 1.5e-2,
                                          .atol = 1.5e-2,
                                          .rel_l2 = 4.5e-3,
                                          .row = 1.35e-2,
                                          .scale = 3e-3,
                                          .between = 2e-3};
  /// Multiply-adds up to which the truth is the whole output.
  static constexpr double kWholeTruth = 5e8;

  W4Moe(Device& device, const Case& c, const W4Shape& shape, double most_products = kWholeTruth);
  /// check() then compares by what this scaling costs.
  W4Args args(W4Scaling scaling = W4Scaling::exact);

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;
  /// listed: tensors expert_rows [E] and rows_by_expert [R], which have no padding.
  void lay_out(const std::string& rows) override;
  /// Puts the output in place that a variant with this mistake leaves; for check() to reject.
  void slip(W4Slip slip);

  const W4Shape shape;

 private:
  void fill_operands(uint64_t seed);
  void upload_lists();
  Tolerance own_ceilings() const;
  bool redraw(uint64_t change) override;
  W4Product product_of(int32_t expert, const moe_gemm::MoeGemmSample& at, W4Slip slip) const;
  std::vector<double> truth(W4Slip slip, const moe_gemm::MoeGemmSample& at) const;
  std::function<std::string(int64_t row)> row_name() const;
  void swap_experts();
  void drop_row();

  Tensor& x_;
  WeightTensors weights_;
  Tensor* routing_weights_;
  Tensor& sorted_token_ids_;
  Tensor& expert_ids_;
  Tensor& padded_rows_;
  Tensor& out_;
  Tensor *expert_rows_ = nullptr, *rows_by_expert_ = nullptr;  // made when first asked for
  DrawnRows<int32_t> drawn_experts_;
  std::vector<int32_t> experts_;  // [R]
  int32_t padded_ = 0;
  W4Scaling scaling_ = W4Scaling::exact;
  moe_gemm::MoeGemmSample sample_;
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

struct W4GateUp : W4Moe {
  static constexpr const char* kOp = "w4_gate_up";
  static W4Shape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  W4GateUp(Device& device, const Case& c, double most_products = kWholeTruth)
      : W4Moe(device, c, shape_of(c), most_products) {}
};

struct W4Down : W4Moe {
  static constexpr const char* kOp = "w4_down";
  static W4Shape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  W4Down(Device& device, const Case& c, double most_products = kWholeTruth)
      : W4Moe(device, c, shape_of(c), most_products) {}
};

}  // namespace moegate::w4_moe
