// SPDX-License-Identifier: Apache-2.0
// The truth of the w4 products: plain double code, written to be read next to the definition in
// w4_moe.h. No variant shares a line with it. What is wrong on purpose is in it, too, so that each
// mistake differs from the truth in one place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/w4_moe/product.h"

namespace moegate::w4_moe {
namespace {

double value_of(W4Weights weights, int code, W4Slip slip) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  if (weights == W4Weights::mxfp4) return code < 8 ? kMagnitudes[code] : -kMagnitudes[code - 8];
  if (slip == W4Slip::no_offset) return code;
  if (slip == W4Slip::offset_7) return code - 7;
  if (slip == W4Slip::twos_complement) return code < 8 ? code : code - 16;
  return code - 8;
}

double scale_of(W4Weights weights, uint16_t stored) {
  if (weights == W4Weights::int4) return bf16_to_float(stored);
  return stored == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, stored - 127);
}

int code_at(const uint8_t* codes, int k, W4Slip slip) {
  if (slip == W4Slip::halves) {
    constexpr int kBlock = 32;
    const int in_block = k % kBlock;
    const uint8_t byte = codes[k / kBlock * (kBlock / 2) + in_block % (kBlock / 2)];
    return in_block < kBlock / 2 ? byte & 15 : byte >> 4;
  }
  const bool low = (k % 2 == 0) != (slip == W4Slip::nibbles_swapped);
  return low ? codes[k / 2] & 15 : codes[k / 2] >> 4;
}

/// A row of weights as numbers.
std::vector<double> dequantised(const W4Shape& shape, const uint8_t* codes, const uint16_t* scales,
                                W4Slip slip) {
  std::vector<double> row(static_cast<size_t>(shape.k));
  for (int k = 0; k < shape.k; ++k) {
    int group = k / shape.group;
    if (slip == W4Slip::scales_late) group = std::max(0, group - 1);
    if (slip == W4Slip::scales_of_next_size) group /= 2;
    double scale = scale_of(shape.weights, scales[group]);
    if (slip == W4Slip::last_group_doubled && group == shape.groups() - 1) scale *= 2;
    double weight = value_of(shape.weights, code_at(codes, k, slip), slip) * scale;
    if (slip == W4Slip::rounded_weights) {
      weight = bf16_to_float(float_to_bf16(static_cast<float>(weight)));
    }
    row[static_cast<size_t>(k)] = weight;
  }
  return row;
}

double dot(const double* a, const double* b, int elements) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < elements; ++i) sum += a[i] * b[i];
  return sum;
}

double activated(const W4Shape& shape, double gate, double up, W4Slip slip) {
  const double alpha = slip == W4Slip::alpha_one ? 1 : double{shape.alpha};
  if (slip == W4Slip::gate_and_up_swapped) std::swap(gate, up);
  if (slip != W4Slip::no_clamp) {
    const double limit = shape.limit;
    gate = std::min(limit, gate);
    up = std::max(-limit, std::min(limit, up));
  }
  return gate / (1 + std::exp(-alpha * gate)) * (up + (slip == W4Slip::no_beta ? 0 : shape.beta));
}

}  // namespace

std::vector<double> w4_truth(const W4Shape& shape, const W4Product& product, W4Slip slip) {
  const auto k = static_cast<size_t>(shape.k), groups = static_cast<size_t>(shape.groups());
  const size_t rows = product.x.size() / k, weight_rows = product.bias.size();
  const double biases = slip == W4Slip::bias_dropped ? 0 : slip == W4Slip::bias_twice ? 2 : 1;
  const bool behind = slip == W4Slip::bias_behind_clamp;
  std::vector<double> h(rows * weight_rows);
#pragma omp parallel for schedule(static)
  for (size_t n = 0; n < weight_rows; ++n) {
    const auto weights = dequantised(shape, product.codes.data() + n * k / 2,
                                     product.scales.data() + n * groups, slip);
    for (size_t r = 0; r < rows; ++r) {
      const double sum = dot(weights.data(), product.x.data() + r * k, shape.k);
      h[r * weight_rows + n] = sum + (behind ? 0 : biases * product.bias[n]);
    }
  }
  std::vector<double> out;
  for (size_t r = 0; r < rows; ++r) {
    const double* row = h.data() + r * weight_rows;
    for (size_t n = 0; n < weight_rows; n += shape.down ? 1 : 2) {
      const double y = shape.down ? product.routing_weights[r] * row[n]
                                  : activated(shape, row[n], row[n + 1], slip);
      out.push_back(y + (behind ? product.bias[n] : 0));
    }
  }
  return out;
}

}  // namespace moegate::w4_moe
