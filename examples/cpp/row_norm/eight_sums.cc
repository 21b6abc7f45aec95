// SPDX-License-Identifier: Apache-2.0
// row_norm on the CPU with eight partial sums, which the compiler keeps in one vector register: one
// sum is a chain of additions that each wait for the last.
#include <cmath>

#include "row_norm.h"

namespace row_norm {
namespace {

constexpr int64_t kSums = 8;

void launch(RowNorm& problem, const moegate::Launch&) {
  const Args a = problem.args();
  for (int64_t t = 0; t < a.tokens; ++t) {
    const float* x = a.x + t * a.hidden;
    float sums[kSums] = {}, squares = 0;
    const int64_t whole = a.hidden / kSums * kSums;
    for (int64_t i = 0; i < whole; i += kSums) {
      for (int64_t j = 0; j < kSums; ++j) sums[j] += x[i + j] * x[i + j];
    }
    for (const float sum : sums) squares += sum;
    for (int64_t i = whole; i < a.hidden; ++i) squares += x[i] * x[i];
    const float factor = 1 / std::sqrt(squares / static_cast<float>(a.hidden) + kEpsilon);
    for (int64_t i = 0; i < a.hidden; ++i) a.out[t * a.hidden + i] = x[i] * factor * a.weight[i];
  }
}

const moegate::Kernel<RowNorm> kernel({.name = "eight_sums",
                                       .backend = moegate::Backend::host,
                                       .help = "row after row, eight partial sums",
                                       .launch = launch});

}  // namespace
}  // namespace row_norm
