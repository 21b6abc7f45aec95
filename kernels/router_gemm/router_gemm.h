// SPDX-License-Identifier: Apache-2.0
// Operator router_gemm: the logits of an MoE layer's router, one for each token and expert:
//
//   logits[t, e] = bias[e] + sum_k x[t, k] * w[e, k]
//
// x is bf16, w bf16 or fp32. Summed up in fp32, and rounded once where logits are bf16. The bias
// has the type of the logits, as cuBLASLt wants it. The k largest logits of a token choose its
// experts, so that check() asks besides whether these are the truth's. topk_sort goes on from here.
#pragma once

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"

namespace moegate {
class CublasltProduct;  // harness/kernel/cublaslt.h
}

namespace moegate::router_gemm {

/// Elements of K that are loaded at once; divides H.
constexpr int kPiece = 8;

struct RouterGemmShape {
  int tokens, experts, topk;  // T, E, k
  int hidden;                 // H
  DType weights, out;         // fp32 or bf16
  int biased;                 // 0 or 1
  int edges;                  // parameter values

  /// Reads and checks the case's parameters; throws Error(usage).
  static RouterGemmShape of(const Case& c);

  int64_t logits() const { return int64_t{tokens} * experts; }
};

/// Why no kernel of the tensor cores takes a case; empty: it does.
inline std::string mma_unsupported(const RouterGemmShape& shape) {
  return shape.weights == DType::bf16 ? "" : "takes weights in bf16 only";
}

/// Everything a launch needs, by value; pointers are device pointers.
struct RouterGemmArgs {
  const uint16_t* x;  // [T, H] bf16
  const void* w;      // [E, H] of shape.weights
  const void* bias;   // [E] of shape.out; null without
  void* logits;       // [T, E] of shape.out
  RouterGemmShape shape;

  MOEGATE_HD float bias_of(int expert) const {
    return bias ? read_float(shape.out, bias, expert) : 0;
  }
  /// Adds the bias to a sum and rounds it.
  MOEGATE_HD void store(int64_t token, int expert, float sum) const {
    write_float(shape.out, logits, token * shape.experts + expert, sum + bias_of(expert));
  }
};
static_assert(std::has_unique_object_representations_v<RouterGemmArgs>, "a row's identity");

/// Some tokens, and all experts, on the host.
struct RouterOperands {
  std::vector<double> x, w, bias;  // [rows, H], [E, H], [E]
};

/// A mistake that the truth makes on purpose, for what check() must reject.
enum class RouterSlip {
  none,
  experts_swapped,  // the first two rows of w
  tokens_swapped,   // the first two
  token_dropped,    // the first
  bias_dropped,
  bias_twice,
  k_tail_missing,  // what is behind the last whole 64, or the last 64
  weights_in_bf16,
  logits_in_bf16
};

/// The expected logits [rows, E] in plain double code.
std::vector<double> router_gemm_truth(const RouterGemmShape& shape, const RouterOperands& operands,
                                      RouterSlip slip = RouterSlip::none);

/// The rows of `logits` [rows, E] whose k largest are other experts' than those of `truth`, though
/// a logit that is missing exceeds one in its place by more than 4 ulp, or by more than six times
/// the error `rel_l2` of the row. Equal logits are in the order of experts. Rows with a value that
/// is not finite are none of them.
std::vector<int64_t> flipped_rows(const RouterGemmShape& shape, const std::vector<float>& logits,
                                  const std::vector<double>& truth, double rel_l2);

class RouterGemm : public Problem {
 public:
  static constexpr const char* kOp = "router_gemm";
  // Measured on the host, H = 7168, T = 32, one sum of all of K: 7.6e-7, worst row 8.7e-7.
  static constexpr Tolerance kOfFp32{
      .rtol = 1e-5, .atol = 3e-5, .rel_l2 = 1e-5, .row = 3e-5, .scale = 1e-5};
  // The output's own rounding is 1.65e-3.
  static constexpr Tolerance kOfBf16{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 3e-3, .row = 9e-3, .scale = 2e-3, .between = 0};
  /// Multiply-adds up to which the truth is the whole output, and tokens that stand for more.
  static constexpr double kWholeTruth = 5e8;
  static constexpr int64_t kSampledTokens = 256;

  static void validate(const Case& c);
  RouterGemm(Device& device, const Case& c, double most_products = kWholeTruth);
  RouterGemmArgs args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;
  /// Puts the logits in place that a variant with this mistake leaves; for check() to reject.
  void slip(RouterSlip slip);

  const RouterGemmShape shape;
  /// What variant `cublaslt` launches, put here by its prepare().
  std::shared_ptr<const CublasltProduct> library_product;

 private:
  bool redraw(uint64_t change) override;
  void fill_weights(uint64_t seed);
  bool samples() const { return static_cast<int>(tokens_.size()) < shape.tokens; }
  Tolerance own_ceilings() const;
  RouterOperands operands_of(const std::vector<int64_t>& tokens) const;
  std::vector<double> truth(const std::vector<int64_t>& tokens, RouterSlip slip) const;
  std::vector<float> logits_of(const std::vector<int64_t>& tokens) const;
  Accuracy compare_topk(const std::vector<float>& logits) const;

  Tensor& x_;
  Tensor& w_;
  Tensor* bias_;
  Tensor& logits_;
  std::optional<DrawnRows<uint16_t>> drawn_edges_;
  std::vector<int64_t> tokens_;  // that are compared
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

}  // namespace moegate::router_gemm
