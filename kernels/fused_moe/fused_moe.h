// SPDX-License-Identifier: Apache-2.0
// Operator fused_moe: a whole MoE layer of block-scaled fp8 behind its router, as vLLM, SGLang and
// aphrodite-engine chain it. For token t and each of its k experts e = topk_ids[t, j], row
// r = t*k + j:
//
//   h[r] = bf16(x[t] * W1[e])                                  (moe_gate_up)
//   q[r] = e4m3 of silu(gate) * up, scale factors per 128      (silu_mul_quant)
//   y[r] = bf16(topk_weights[t, j] * (q[r] * W2[e]))           (moe_down)
//   out[t] = bf16(y[t*k] + ... + y[t*k + k - 1])               (moe_sum)
//
// input = bf16: x[t] is given in bf16, and first quantised per 128 as in silu_mul_quant.
//
// Rounding points are those of the layer's parts, whose headers define them. A variant is a
// sequence of the parts' kernels, or one kernel for some of them; what stands between the parts is
// scratch memory, not an operand. With `rank` a part of the rows exists: FusedMoe::rank().
#pragma once

#include "harness/kernel/redraw.h"
#include "kernels/check/layer_truth.h"
#include "kernels/check/truth_of_rows.h"
#include "kernels/moe_align/moe_align.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::fused_moe {

using moe_gemm::kMoeGroup;

struct FusedMoeShape {
  int tokens, experts, topk;  // T, E, k; E of this rank
  int hidden, inter;          // H, I
  int block;                  // BM of both products

  /// Reads and checks the case's parameters; throws Error(usage).
  static FusedMoeShape of(const Case& c);

  MOEGATE_HD int rows() const { return tokens * topk; }  // R
  moe_align::MoeAlignShape align() const {
    return {tokens, experts, topk, block, moe_align::IdData::valid};
  }
  moe_gemm::MoeGemmShape gate_up() const {
    return {.tokens = tokens,
            .experts = experts,
            .topk = topk,
            .k = hidden,
            .n = 2 * inter,
            .block = block,
            .down = false,
            .dtype = DType::e4m3};
  }
  moe_gemm::MoeGemmShape down() const {
    return {.tokens = tokens,
            .experts = experts,
            .topk = topk,
            .k = inter,
            .n = hidden,
            .block = block,
            .down = true,
            .dtype = DType::e4m3};
  }
};

/// Everything a launch needs, by value; pointers are device pointers.
struct FusedMoeArgs {
  const uint8_t* x;         // [T, H] e4m3; null where the layer has to quantise FusedMoe::x_bf16()
  const float* x_scales;    // [T, H/128]; as x
  const int32_t* topk_ids;  // [T, k]
  const float* topk_weights;  // [T, k]
  const uint8_t* w1;          // [E, 2I, H] e4m3
  const float* w1_scales;     // [E, 2I/128, H/128]
  const uint8_t* w2;          // [E, H, I] e4m3
  const float* w2_scales;     // [E, H/128, I/128]
  uint16_t* out;              // [T, H] bf16
  FusedMoeShape shape;
};

class FusedMoe : public Problem {
 public:
  static constexpr const char* kOp = "fused_moe";
  // Measured on the host: 1.8e-3, worst row 1.9e-3: the output's own rounding. Now and then the
  // largest of a group falls on the other side of a tie in h; then 128 activations are quantised
  // anew: a row off by some 1e-2, an element by 0.07. A code alone does a tenth of that.
  static constexpr Tolerance kTolerance{
      .rtol = 2e-2, .atol = 0.12, .rel_l2 = 1e-2, .row = 4e-2, .scale = 5e-3, .between = 0};
  /// That over the root of a row's activations, k * I, is what such a group adds to its row: 128 of
  /// them are rounded to 2^-4 of their value at most, another way. Measured: 1e-2 at k * I = 512,
  /// and half as much again between seeds in chains on an H200.
  static constexpr double kGroupAnew = 0.35;
  /// The tolerance that a variant states whose sums have fewer bits than fp32, or which rounds
  /// between silu and its quantisation: some codes and scale factors are then others. Simulated on
  /// the host with gate-up sums off by 4e-4, as of tensor cores in fp8: 1.1e-2, of one token
  /// 3.3e-2, an element by 0.2; activations rounded to bf16: 1.2e-2, 3.5e-2, 0.3, scale 1.5e-2.
  /// Measured on an H200 at six layers of DeepSeek-R1 and Qwen3-30B: 1.3e-2, of one token 1.6e-2.
  static constexpr double kOtherCodes = 4;
  /// What other codes add to an element, rms: measured on an H200 1.35e-2 with the activation in
  /// bf16, 8.9e-3 without.
  static constexpr double kCodesRounded = 0.02, kSumsRounded = 0.0125;
  /// The same where the activation is not rounded to bf16. Measured there: 8e-3, of one token
  /// 1.2e-2; with sums of tokens in bf16 9e-3.
  static constexpr double kOtherSums = 2;
  /// Multiply-adds up to which the truth is the whole output, and those of the tokens that stand
  /// for a larger one (two at least).
  static constexpr double kWholeTruth = 5e8, kSampleProducts = 3e8;

  static void validate(const Case& c);
  /// Of x: e4m3 or bf16.
  static DType input_of(const Case& c);
  FusedMoe(Device& device, const Case& c, double most_products = kWholeTruth);
  FusedMoeArgs args();
  /// [T, H]; null where x is e4m3.
  const uint16_t* x_bf16();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& tokens) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const FusedMoeShape shape;
  const DType input;
  /// The rank of the case: topk_ids has -1 where another rank has the expert, and the output is the
  /// sum over this rank's experts alone; of a token without any: zeros.
  const ExpertRank& rank() const { return rank_; }

 private:
  /// What the truth is wrong in on purpose.
  enum class Fault { none, experts_swapped, token_dropped, scales_transposed };

  bool redraw(uint64_t change) override;
  void fill_operands(uint64_t seed);
  Tolerance own_ceilings() const;
  check::Assignment assignment(Fault fault) const;
  /// Of the tokens `sources`, quantised here where that is the layer's first step.
  void set_input(moe_gemm::ExpertProduct& product, const std::vector<int64_t>& sources) const;
  std::vector<double> truth(Fault fault, const std::vector<int64_t>& tokens) const;
  /// y of one expert's rows, [rows, H], rounded.
  std::vector<double> expert_rows(int32_t expert, const std::vector<int64_t>& rows,
                                  const std::vector<float>& weights, bool transposed) const;
  void spoil(Fault fault);

  ExpertRank rank_;
  Tensor& x_;
  Tensor* x_scales_;
  Tensor& topk_ids_;
  Tensor& topk_weights_;
  Tensor& w1_;
  Tensor& w1_scales_;
  Tensor& w2_;
  Tensor& w2_scales_;
  Tensor& out_;
  DrawnRows<int32_t> drawn_experts_;  // of the layer
  std::vector<int32_t> experts_;      // [R], of this rank; -1: another rank's
  std::vector<int64_t> tokens_;       // that are compared
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

}  // namespace moegate::fused_moe
