// SPDX-License-Identifier: Apache-2.0
// An int4 product (qmoe.h): its shape and its operands, how they are drawn, and how they come to
// the host as exact values. Operators have one product or several.
#pragma once

#include <map>

#include "harness/kernel/kernel.h"

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

/// 16-bit values of a type as floats, and the nearest ones of it.
std::vector<float> widened(DType dtype, const std::vector<uint16_t>& bits);
std::vector<uint16_t> narrowed(DType dtype, const std::vector<double>& values);

/// x of rows first, first + 1, ... of an endless row of them. At the edges a sixteenth are zeros of
/// either sign.
std::vector<uint16_t> drawn_x(const QmoeShape& shape, uint64_t seed, int64_t first);

/// Streams of the counter-based generator, one per tensor and use.
struct WeightStreams {
  uint64_t codes, scales, bias;
  uint64_t edges;  // and the next one
};

/// The operands of a product that belong to experts.
class ExpertWeights {
 public:
  /// codes: [E, N, K/2] bytes, scales: [E, N, K/b], bias: [E, N], null without.
  ExpertWeights(const QmoeShape& shape, Tensor& codes, Tensor& scales, Tensor* bias)
      : shape_(shape), codes_(codes), scales_(scales), bias_(bias) {}

  void draw(uint64_t seed, const WeightStreams& streams);
  /// Sets the pointers of `args`.
  void put_into(QmoeArgs& args) const;
  /// Of one expert. Transposed: scale factors read as [K/b, N], which is a fault.
  QmoeInputs::Expert of(Device& device, int32_t expert, bool transposed = false) const;
  /// Of one expert.
  double bytes() const;

 private:
  void make_edges(uint64_t seed, uint64_t stream);

  QmoeShape shape_;
  Tensor& codes_;
  Tensor& scales_;
  Tensor* bias_;
};

}  // namespace moegate::qmoe
