// SPDX-License-Identifier: Apache-2.0
// For tests: paired rounds whose mean and variance are known.
#pragma once

#include "harness/judge/verdict.h"

namespace moegate::test {

/// `rounds` (even) log ratios around `center`, each off by `by`: variance by^2 n / (n - 1).
inline PairedQuestion pairs(double center, double by, int rounds = 4) {
  PairedQuestion q;
  for (int i = 0; i < rounds; ++i) q.log_ratios.push_back(center + (i % 2 == 0 ? by : -by));
  return q;
}

}  // namespace moegate::test
