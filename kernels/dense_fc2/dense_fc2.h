// SPDX-License-Identifier: Apache-2.0
// Operator dense_fc2: the second product of an MoE layer as one dense GEMM over all experts
// (TensorRT-LLM PR 12686). The experts' W2 lie side by side along K, the activations of every token
// for every expert likewise; a factor per token and expert says what counts:
//
//   out[m, n] = sum_e alpha[m, e] * sum_{k in e's I} (s_a a)[m, k] * (s_b b)[n, k]
//
// K = E*I. alpha is the sum of the routing weights of token m's slots that name expert e, and
// exactly 0 for every other expert, whose activations are finite but mean nothing. Rounded once, to
// bf16. a and b are e4m3, with one scale factor each, or with one per 128 of K: of a for every row,
// of b for every 128 columns. Of the products only k / E are useful: the dense form pays where
// nearly all weights have to be read anyway. The operator's cost is that of the useful ones, so
// that no variant beats its floor: products where alpha is not 0, the weights of experts that some
// token needs.
#pragma once

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate {
class CublasltProduct;  // harness/cublaslt.h
}

namespace moegate::dense_fc2 {

using moe_gemm::kMoeGroup;

struct DenseFc2Shape {
  int tokens, experts, topk;  // M, E, k
  int inter, hidden;          // I, H
  int k_tile;                 // K of a step, 128 or 256; divides I
  bool block_scales;          // of a and b; else one scale factor each
  bool edges;                 // parameter alphas
  uint8_t unused[6] = {};     // in place of padding, whose bytes nobody writes

  /// Reads and checks the case's parameters; throws Error(usage).
  static DenseFc2Shape of(const Case& c);

  MOEGATE_HD int k() const { return experts * inter; }
  MOEGATE_HD int k_tiles() const { return k() / k_tile; }
  MOEGATE_HD int k_groups() const { return k() / kMoeGroup; }
  MOEGATE_HD int expert_groups() const { return inter / kMoeGroup; }
  MOEGATE_HD int n_groups() const { return (hidden + kMoeGroup - 1) / kMoeGroup; }
  /// The same product without alpha, as a grouped one of a single expert.
  MOEGATE_HD moe_gemm::MoeGemmShape product() const {
    return {.tokens = tokens,
            .experts = 1,
            .topk = 1,
            .k = k(),
            .n = hidden,
            .block = 1,
            .down = false,
            .dtype = DType::e4m3};
  }
};

/// Everything a launch needs, by value; pointers are device pointers.
struct DenseFc2Args {
  const uint8_t* a;       // [M, E*I] e4m3
  const float* a_scales;  // [M, E*I/128]; or [1]
  const uint8_t* b;       // [H, E*I] e4m3
  const float* b_scales;  // [ceil(H/128), E*I/128]; or [1]
  const float* alpha;     // [M, E]
  uint16_t* out;          // [M, H] bf16
  DenseFc2Shape shape;
};
static_assert(std::has_unique_object_representations_v<DenseFc2Args>, "a row's identity");

/// alpha [M, E] of the experts [M, k] that the slots of tokens `first` and later name. As a router
/// leaves it, or with `edges`: the last slot of tokens 0, 2, 4, ... names the expert of the first
/// once more, and tokens 1, 5, 9, ... have weights of 0.
std::vector<float> dense_fc2_alpha(const DenseFc2Shape& shape, std::span<const int32_t> experts,
                                   uint64_t seed, int64_t first = 0);

class DenseFc2 : public Problem {
 public:
  static constexpr const char* kOp = "dense_fc2";
  // Measured on the host: 1.7e-3, worst row 2.0e-3: the output's own rounding.
  static constexpr Tolerance kTolerance{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 3e-3, .row = 9e-3, .scale = 2e-3, .between = 0};
  /// Multiply-adds of the dense form up to which the truth is the whole output.
  static constexpr double kWholeTruth = 5e8;

  static void validate(const Case& c);
  DenseFc2(Device& device, const Case& c, double most_products = kWholeTruth);
  DenseFc2Args args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  std::vector<Fact> facts() const override;

  const DenseFc2Shape shape;
  /// What variant `cublaslt_plain` launches, put here by its prepare().
  std::shared_ptr<const CublasltProduct> library_product;
  /// Folds alpha into the activations once more, for that variant; empty where it did not.
  std::function<void()> refold;

 private:
  /// What the truth is wrong in on purpose.
  enum class Fault { none, experts_swapped, token_dropped, scales_transposed };

  Tolerance own_ceilings() const;
  /// The operands at the sample's rows and columns, with all of K and a scale factor per group of
  /// it in either form.
  struct Excerpt {
    std::vector<uint8_t> a, b;              // [rows, E*I], [columns, E*I]
    std::vector<float> a_scales, b_scales;  // [rows, E*I/128], [columns, E*I/128]
    std::vector<float> alpha;               // [rows, E]
  };

  bool redraw(uint64_t change) override;
  void fill_operands(uint64_t seed);
  Excerpt excerpt(Fault fault, const moe_gemm::MoeGemmSample& at) const;
  std::vector<float> column_scales(const std::vector<int32_t>& columns, bool transposed) const;
  void break_alpha(Fault fault, std::vector<float>& alpha) const;
  std::vector<double> truth(Fault fault, const moe_gemm::MoeGemmSample& at) const;
  void spoil(Fault fault);
  double active_experts() const;
  double useful_alphas() const;
  void reject_nonzero_rows(Accuracy& a, const std::vector<uint16_t>& bits) const;

  Tensor& a_;
  Tensor& a_scales_;
  Tensor& b_;
  Tensor& b_scales_;
  Tensor& alpha_;
  Tensor& out_;
  DrawnRows<float> drawn_alphas_;
  std::vector<float> alphas_;  // what alpha_ holds
  moe_gemm::MoeGemmSample sample_;
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

}  // namespace moegate::dense_fc2
