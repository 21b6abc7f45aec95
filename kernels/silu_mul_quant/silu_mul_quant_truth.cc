// SPDX-License-Identifier: Apache-2.0
// The truth of silu_mul_quant: plain double code, written to be read next to the definition in
// silu_mul_quant.h. No variant shares a line with it.
#include <algorithm>
#include <cmath>

#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::silu_mul_quant {

double round_to_e4m3(double x) {
  if (x == 0) return 0;
  constexpr int kLeastExponent = -6, kMantissaBits = 3;
  const int exponent = std::max(std::ilogb(x), kLeastExponent);
  const double step = std::ldexp(1.0, exponent - kMantissaBits);
  return std::clamp(std::nearbyint(x / step) * step, -448.0, 448.0);
}

QuantisedRows quantisation_truth(const std::vector<double>& values) {
  QuantisedRows out;
  out.codes.reserve(values.size());
  for (size_t first = 0; first < values.size(); first += kQuantGroup) {
    double amax = 1e-10;
    for (size_t i = 0; i < kQuantGroup; ++i) amax = std::max(amax, std::abs(values[first + i]));
    const double scale = amax / 448;
    out.scales.push_back(scale);
    for (size_t i = 0; i < kQuantGroup; ++i)
      out.codes.push_back(round_to_e4m3(values[first + i] / scale));
  }
  return out;
}

QuantisedRows silu_mul_quant_truth(const std::vector<uint16_t>& h, int inter) {
  const auto width = static_cast<size_t>(inter), rows = h.size() / (2 * width);
  std::vector<double> a;
  a.reserve(rows * width);
  for (size_t r = 0; r < rows; ++r) {
    const uint16_t* gate = h.data() + r * 2 * width;
    const uint16_t* up = gate + width;
    for (size_t i = 0; i < width; ++i) {
      const double x = bf16_to_float(gate[i]);
      a.push_back(x / (1 + std::exp(-x)) * double{bf16_to_float(up[i])});
    }
  }
  return quantisation_truth(a);
}

}  // namespace moegate::silu_mul_quant
