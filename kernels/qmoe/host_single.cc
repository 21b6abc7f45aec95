// SPDX-License-Identifier: Apache-2.0
// The int4 products on the CPU: for every routed row and column one dot product over all of K, then
// bias and SwiGLU. The yardstick.
#include <algorithm>
#include <cmath>

#include "kernels/qmoe/qmoe.h"

namespace moegate {
namespace {

float widen(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

float column_dot(const QmoeArgs& args, int r, int n) {
  const QmoeShape& s = args.shape;
  const uint16_t* x = args.x + int64_t{args.row_source[r]} * s.k;
  const int64_t column = int64_t{args.row_expert[r]} * s.n + n;
  const uint8_t* codes = args.weights + column * s.k / 2;
  float sum = 0;
  for (int g = 0; g < s.groups(); ++g) {
    float part = 0;
    for (int k = g * s.block; k < (g + 1) * s.block; k += 2) {
      const int code = codes[k / 2];
      part += static_cast<float>((code & 15) - 8) * widen(s.dtype, x[k]) +
              static_cast<float>((code >> 4) - 8) * widen(s.dtype, x[k + 1]);
    }
    sum += part * widen(s.dtype, args.scales[column * s.groups() + g]);
  }
  return args.bias ? sum + widen(s.dtype, args.bias[column]) : sum;
}

template <class P>
void launch(P& problem, const Launch&) {
  const QmoeArgs args = problem.args();
  const QmoeShape& s = args.shape;
  const int64_t outputs = int64_t{s.rows()} * s.outputs();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < outputs; ++i) {
    const int r = static_cast<int>(i / s.outputs()), j = static_cast<int>(i % s.outputs());
    float value = 0;
    if (s.swiglu) {
      const float gate = std::min(column_dot(args, r, 2 * j), s.limit);
      const float up = std::clamp(column_dot(args, r, 2 * j + 1), -s.limit, s.limit);
      value = gate / (1 + std::exp(-s.alpha * gate)) * (up + s.beta);
    } else {
      value = column_dot(args, r, j);
    }
    args.out[i] = s.dtype == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
  }
}

const Kernel<QmoeFc1> fc1({.name = "single",
                           .backend = Backend::host,
                           .help = "one pass over K per row and column",
                           .launch = launch<QmoeFc1>});
const Kernel<QmoeFc2> fc2({.name = "single",
                           .backend = Backend::host,
                           .help = "one pass over K per row and column",
                           .launch = launch<QmoeFc2>});

}  // namespace
}  // namespace moegate
