// SPDX-License-Identifier: Apache-2.0
// A product with weights of 4 bits (w4_moe.h): shape, arguments of a launch, and the truth.
#pragma once

#include "harness/kernel/kernel.h"
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
  bool down;
  bool early = false;      // in a chain: it starts while the launches before it still run
  uint8_t unused[2] = {};  // in place of padding, whose bytes nobody writes
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

/// e^x for loops that a compiler makes vectors of: within 2e-7 of it, inf from 2^127.5 on and not
/// below 2^-126.
inline float exp_of(float x) {
  x = x > 89 ? 89 : x < -87 ? -87 : x;                // NaN stays
  const float rounded = x * 1.44269504f + 0x1.8p23f;  // its last bits are those of x / ln 2
  const float n = rounded - 0x1.8p23f;
  const float r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;  // two parts of ln 2
  const float tail = r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f))));
  return (1 + r * (1 + r * (0.5f + tail))) * bits_float((float_bits(rounded) + 127) << 23);
}

/// An output of gate_up of its two sums.
MOEGATE_HD inline float swiglu(const W4Shape& shape, float gate, float up) {
  gate = gate > shape.limit ? shape.limit : gate;  // NaN stays
  up = up > shape.limit ? shape.limit : up < -shape.limit ? -shape.limit : up;
#ifdef __CUDA_ARCH__
  // Beyond 2^126 the quotient is 0, as it should be.
  return gate * __fdividef(1, 1 + __expf(-shape.alpha * gate)) * (up + shape.beta);
#else
  return gate / (1 + exp_of(-shape.alpha * gate)) * (up + shape.beta);
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

}  // namespace moegate::w4_moe
