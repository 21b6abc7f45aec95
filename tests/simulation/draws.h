// SPDX-License-Identifier: Apache-2.0
// Random numbers of the simulations, the same on every platform: own transforms, one draw
// per statement.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace moegate::test {

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}

  uint64_t bits() { return random_(); }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  /// Student's t with 3 degrees of freedom: heavy tails, no fourth moment.
  double student3() {
    double chi2 = 0;
    for (int i = 0; i < 3; ++i) chi2 += std::pow(normal(), 2);
    return normal() / std::sqrt(chi2 / 3);
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace moegate::test
