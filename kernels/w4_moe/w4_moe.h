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

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::w4_moe {

/// What codes and scales mean.
enum class W4Weights : int { mxfp4, int4 };

/// How a variant scales int4 weights, of which (q - 8) * scale has 11 bits.
enum class W4Scaling {
  exact,    // in fp32, or it scales sums of a group
  in_bf16,  // which rounds them
};

struct W4Shape {
  int tokens, experts, topk;  // T, E, k
  int k, n;                   // of the product; n: rows of weights of an expert
  int block;                  // BM: rows that every expert's rows are padded to
  int down;                   // 0 or 1
  W4Weights weights;
  float alpha, beta, limit;  // of gate_up
  int group;                 // elements of K that share a scale

  MOEGATE_HD int rows() const { return tokens * topk; }                  // R
  MOEGATE_HD int source_rows() const { return down ? rows() : tokens; }  // rows of x
  MOEGATE_HD int outputs() const { return down ? n : n / 2; }            // columns of out
  MOEGATE_HD int groups() const { return k / group; }
  /// Row of x that row r reads.
  MOEGATE_HD int source(int r) const { return down ? r : r / topk; }
  int64_t capacity() const { return moe_gemm::aligned_capacity(rows(), experts, block); }
};

/// Everything a launch needs, by value; pointers are device pointers.
struct W4Args {
  const uint16_t* x;                // [source_rows, K] bf16
  const uint8_t* codes;             // [E, N, K/2]
  const void* scales;               // [E, N, K/group]: bytes (e8m0), of int4 bf16
  const uint16_t* bias;             // [E, N] bf16; of int4 perhaps null
  const float* routing_weights;     // [R]; null for gate_up
  const int32_t* sorted_token_ids;  // [capacity]: r, ascending within an expert; padding is R
  const int32_t* expert_ids;        // [ceil(capacity / BM)]
  const int32_t* padded_rows;       // [1]
  uint16_t* out;                    // [R, outputs] bf16
  W4Shape shape;
};

/// An output of gate_up of its two sums.
MOEGATE_HD inline float swiglu(const W4Shape& shape, float gate, float up) {
  gate = gate > shape.limit ? shape.limit : gate;  // NaN stays
  up = up > shape.limit ? shape.limit : up < -shape.limit ? -shape.limit : up;
#ifdef __CUDA_ARCH__
  // Beyond 2^126 the quotient is 0, as it should be.
  return gate * __fdividef(1, 1 + __expf(-shape.alpha * gate)) * (up + shape.beta);
#else
  return gate / (1 + std::exp(-shape.alpha * gate)) * (up + shape.beta);
#endif
}

/// Some rows of x, and some columns of the output of one expert, on the host.
struct W4Product {
  std::vector<double> x;                // [rows, K]
  std::vector<uint8_t> codes;           // [weight rows, K/2]
  std::vector<uint16_t> scales;         // [weight rows, K/group], as they are stored
  std::vector<double> bias;             // [weight rows]
  std::vector<double> routing_weights;  // [rows]; empty for gate_up
};

/// A mistake that the truth makes on purpose, for what check() must reject.
enum class W4Slip {
  none,
  scales_transposed,    // read as [K/32, N]
  scales_late,          // of the group before
  scales_of_next_size,  // of groups that are twice as large
  scales_of_expert_0,   // for all experts
  nibbles_swapped,      // the high nibble is the even k
  halves,               // low nibbles are the first half of 32, as in llama.cpp
  last_group_doubled,   // scales read past their end
  alpha_one,
  no_clamp,
  no_beta,
  gate_and_up_swapped,
  bias_dropped,
  bias_twice,
  bias_behind_clamp,  // and beside the routing weight
  // Of int4.
  no_offset,        // q
  offset_7,         // q - 7
  twos_complement,  // q below 8, else q - 16
  rounded_weights,  // to bf16: no mistake of a variant that says so
};

/// The expected output [rows, columns] in plain double code. In gate_up a column has two rows of
/// weights, one behind the other.
std::vector<double> w4_truth(const W4Shape& shape, const W4Product& product,
                             W4Slip slip = W4Slip::none);

/// What both operators are; they differ in their shape alone.
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
  void fill_mxfp4(uint64_t seed, float size);
  void fill_int4(uint64_t seed, float size);
  void make_edges(uint64_t seed);
  void put_beyond(uint64_t seed, std::vector<uint16_t>& scales);
  std::vector<uint16_t> scales_of(int64_t width, const std::vector<int64_t>& rows) const;
  void upload_scales(const std::vector<uint16_t>& scales);
  void upload_lists();
  Tolerance own_ceilings() const;
  bool redraw(uint64_t change) override;
  W4Product product_of(int32_t expert, const moe_gemm::MoeGemmSample& at, W4Slip slip) const;
  std::vector<double> truth(W4Slip slip, const moe_gemm::MoeGemmSample& at) const;
  std::function<std::string(int64_t row)> row_name() const;
  void swap_experts();
  void drop_row();

  Tensor& x_;
  Tensor& codes_;
  Tensor& scales_;
  Tensor* bias_;
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
