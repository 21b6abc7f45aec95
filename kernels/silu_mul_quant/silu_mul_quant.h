// SPDX-License-Identifier: Apache-2.0
// Operator silu_mul_quant: what stands between the two grouped GEMMs of an fp8 MoE layer. Every
// routed row of h, [gate | up] of 2I columns, becomes
//
//   a[r, i] = silu(h[r, i]) * h[r, I + i],  silu(x) = x / (1 + e^-x)
//
// and is quantised in groups of 128 columns, as vLLM and SGLang do (per-token-group quantisation):
// scales[r, g] = max(max |a|, 1e-10) / 448 over the group, q = e4m3 of a / scale, rounded to
// nearest even. `a` itself is not rounded in between; a variant that does so states a factor on the
// tolerance.
#pragma once

#include <optional>

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"

namespace moegate::silu_mul_quant {

/// Columns that share a scale factor.
constexpr int kQuantGroup = 128;
/// The largest e4m3 value, and the least that a group's largest value counts as.
constexpr float kLargestCode = 448, kLeastAmax = 1e-10f;

struct SiluMulQuantShape {
  int rows;   // R = T*k
  int inter;  // I

  /// Reads and checks the case's parameters; throws Error(usage).
  static SiluMulQuantShape of(const Case& c);

  MOEGATE_HD int groups() const { return inter / kQuantGroup; }  // of a row
};

/// Everything a launch needs, by value; pointers are device pointers.
struct SiluMulQuantArgs {
  const uint16_t* h;  // [R, 2I] bf16
  uint8_t* q;         // [R, I] e4m3
  float* scales;      // [R, I/128]
  SiluMulQuantShape shape;
};

/// The expected output of some rows, in double.
struct QuantisedRows {
  std::vector<double> codes;   // [rows, I]: values of the e4m3 codes, so a / scale rounded
  std::vector<double> scales;  // [rows, I/128]
  bool empty() const { return codes.empty(); }
};
/// Of values [rows, I], in groups of 128.
QuantisedRows quantisation_truth(const std::vector<double>& values);
QuantisedRows silu_mul_quant_truth(const std::vector<uint16_t>& h, int inter);

/// The nearest e4m3 value, ties to even; beyond 448: 448.
double round_to_e4m3(double x);

class SiluMulQuant : public Problem {
 public:
  static constexpr const char* kOp = "silu_mul_quant";
  // Codes are compared as values, within +-448. A code one step off is up to 2^-3 of its value, or
  // 2^-9 where it is subnormal: what a result next to a tie may do. Measured on the host: 4.5e-4,
  // worst row 1.8e-2 (one code of 256); a single row may come out at 2.5e-2 and 4.6e-3 of scale
  // where the activations are rounded to bf16 first, large outputs at 1.2e-2, worst row 3.3e-2.
  static constexpr Tolerance kCodes{
      .rtol = 0.126, .atol = 0.002, .rel_l2 = 1e-2, .row = 4e-2, .scale = 5e-3, .between = 0};
  // Measured: 6e-8.
  static constexpr Tolerance kScales{
      .rtol = 1e-5, .atol = 0, .rel_l2 = 1e-5, .row = 1e-5, .scale = 1e-5};
  /// The tolerance that a variant states which rounds `a` to bf16; its scale factors may then be
  /// off by that rounding, 2^-8, and no more.
  static constexpr double kRoundedToBf16 = 3;
  /// What it rounds in between: `a`, and with it the scale factor of its group, by 2^-8 each
  /// at most.
  static constexpr double kTwiceRounded = 0x1p-7;
  static constexpr Tolerance kScalesOfBf16{
      .rtol = 0x1.01p-8, .atol = 0, .rel_l2 = 0x1.01p-8, .row = 0x1.01p-8, .scale = 0x1.01p-8};
  /// Elements up to which the truth is the whole output, and rows that stand for a larger one.
  static constexpr int64_t kWholeTruth = int64_t{1} << 22, kSampledRows = 256;

  static void validate(const Case& c);
  SiluMulQuant(Device& device, const Case& c, int64_t most_elements = kWholeTruth);
  SiluMulQuantArgs args();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  Cost cost() const override;

  const SiluMulQuantShape shape;

 private:
  bool redraw(uint64_t change) override;
  bool samples() const { return static_cast<int64_t>(rows_.size()) < shape.rows; }
  QuantisedRows truth(const std::vector<int64_t>& rows) const;
  Tolerance code_ceilings() const;
  Tolerance scale_ceilings() const;
  void swap_rows();
  void drop_row();
  void transpose_scales();

  const int topk_;
  Tensor& h_;
  Tensor& q_;
  Tensor& scales_;
  std::vector<int64_t> rows_;                       // that are compared
  std::optional<DrawnRows<uint16_t>> drawn_edges_;  // where fill_random() does not make h
  QuantisedRows truth_;
  ByChange<QuantisedRows> truths_;
  check::TruthOfRows<QuantisedRows> row_truth_;
  ByChange<check::TruthOfRows<QuantisedRows>> row_truths_;
};

}  // namespace moegate::silu_mul_quant
