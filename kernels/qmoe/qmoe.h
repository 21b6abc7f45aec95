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
// token's
//   rows come later.
//
// q is unsigned, [E, N, K/2] bytes with the even k in the low nibble; s is per channel (b = K) or
// per block of 32, 64 or 128 along K, in the activation type. How a kernel wants the weights laid
// out is its own affair (KernelSpec::prepare). Rounded once, to the activation type.
#pragma once

#include <map>

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"

namespace moegate::qmoe {

/// What activations, scales and biases look like: random, or made to meet the edges of the
/// definition (clamp boundaries and one step beyond, zeros of both signs, groups of zero scales).
enum class QmoeData : int { normal, edges };

struct QmoeShape {
  int tokens, experts, topk;  // T, E, k
  int k, n;                   // of the product: N counts gate and up columns apart
  int block;                  // b: elements of K per scale factor; K when per channel
  bool swiglu;                // fc1
  bool has_bias;
  float alpha, beta, limit;  // fc1; limit is infinity where the model has none
  DType dtype;               // of activations, scales, biases and output: fp16 or bf16
  QmoeData data;

  MOEGATE_HD int rows() const { return tokens * topk; }                    // R
  MOEGATE_HD int source_rows() const { return swiglu ? tokens : rows(); }  // rows of x
  MOEGATE_HD int groups() const { return k / block; }            // scale factors per column
  MOEGATE_HD int outputs() const { return swiglu ? n / 2 : n; }  // columns of out
  MOEGATE_HD int64_t expert_bytes() const { return int64_t{n} * k / 2; }
};

/// Everything a launch needs, by value; pointers are device pointers. 16-bit types are those of
/// shape.dtype.
struct QmoeArgs {
  const uint16_t* x;          // [source_rows, K]
  const int32_t* row_source;  // [R]: row of x
  const int32_t* row_expert;  // [R], ascending
  const uint8_t* weights;     // [E, N, K/2]
  const uint16_t* scales;     // [E, N, K/b]
  const uint16_t* bias;       // [E, N]; null without
  uint16_t* out;              // [R, outputs]
  QmoeShape shape;
};

/// The inputs on the host as exact values, weights of the experts that have rows only.
struct QmoeInputs {
  struct Expert {
    std::vector<uint8_t> codes;  // [N, K/2]
    std::vector<float> scales;   // [N, K/b]
    std::vector<float> bias;     // [N]; empty without
  };
  std::vector<float> x;
  std::vector<int32_t> row_source, row_expert;
  std::map<int32_t, Expert> experts;
};

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
  QmoeInputs inputs() const;
  void make_edges(uint64_t seed);
  void swap_experts();
  void drop_first_token();
  void transpose_scales();

  Tensor& x_;
  Tensor& row_source_;
  Tensor& row_expert_;
  Tensor& weights_;
  Tensor& scales_;
  Tensor* bias_;
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
