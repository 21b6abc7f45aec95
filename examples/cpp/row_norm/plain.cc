// SPDX-License-Identifier: Apache-2.0
// row_norm on the CPU as its definition reads. The operator's yardstick.
#include <cmath>

#include "row_norm.h"

namespace row_norm {
namespace {

void launch(RowNorm& problem, const moegate::Launch&) {
  const Args a = problem.args();
  for (int64_t t = 0; t < a.tokens; ++t) {
    const float* x = a.x + t * a.hidden;
    float squares = 0;
    for (int64_t i = 0; i < a.hidden; ++i) squares += x[i] * x[i];
    const float factor = 1 / std::sqrt(squares / static_cast<float>(a.hidden) + kEpsilon);
    for (int64_t i = 0; i < a.hidden; ++i) a.out[t * a.hidden + i] = x[i] * factor * a.weight[i];
  }
}

const moegate::Kernel<RowNorm> kernel({.name = "plain",
                                       .backend = moegate::Backend::host,
                                       .help = "row after row, one sum",
                                       .launch = launch});

}  // namespace
}  // namespace row_norm
