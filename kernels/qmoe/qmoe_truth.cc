// SPDX-License-Identifier: Apache-2.0
// The truth of the qmoe operators: plain double code, written to be read next to the definition in
// qmoe.h. No variant shares a line with it.
#include <algorithm>
#include <cmath>

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {
namespace {

/// Column n of an expert as the numbers that its codes and scale factors stand for.
std::vector<double> dequantised(const QmoeShape& shape, const QmoeInputs::Expert& expert, int n) {
  std::vector<double> column(static_cast<size_t>(shape.k));
  const uint8_t* codes = expert.codes.data() + static_cast<std::ptrdiff_t>(n) * shape.k / 2;
  const float* scales = expert.scales.data() + static_cast<std::ptrdiff_t>(n) * shape.groups();
  for (int k = 0; k < shape.k; ++k) {
    const int code = k % 2 == 0 ? codes[k / 2] & 15 : codes[k / 2] >> 4;
    column[static_cast<size_t>(k)] = (code - 8) * static_cast<double>(scales[k / shape.block]);
  }
  return column;
}

double dot(const std::vector<double>& column, const double* x) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t k = 0; k < column.size(); ++k) sum += column[k] * x[k];
  return sum;
}

double swiglu(const QmoeShape& shape, double gate, double up) {
  const double limit = shape.limit;
  gate = std::min(gate, limit);
  up = std::clamp(up, -limit, limit);
  return gate / (1 + std::exp(-shape.alpha * gate)) * (up + shape.beta);
}

}  // namespace

std::vector<double> qmoe_truth(const QmoeShape& shape, const QmoeInputs& inputs) {
  const std::vector<double> x(inputs.x.begin(), inputs.x.end());
  const auto width = static_cast<size_t>(shape.n);
  std::vector<double> product(inputs.row_expert.size() * width);
#pragma omp parallel for schedule(dynamic, 16)
  for (int n = 0; n < shape.n; ++n) {
    for (const auto& [e, expert] : inputs.experts) {
      const auto column = dequantised(shape, expert, n);
      const double bias = shape.has_bias ? expert.bias[static_cast<size_t>(n)] : 0;
      for (size_t r = 0; r < inputs.row_expert.size(); ++r) {
        if (inputs.row_expert[r] != e) continue;
        const double* row = x.data() + static_cast<std::ptrdiff_t>(inputs.row_source[r]) * shape.k;
        product[r * width + static_cast<size_t>(n)] = dot(column, row) + bias;
      }
    }
  }
  if (!shape.swiglu) return product;
  std::vector<double> out;
  for (size_t i = 0; i < product.size(); i += 2) {
    out.push_back(swiglu(shape, product[i], product[i + 1]));
  }
  return out;
}

}  // namespace moegate::qmoe
