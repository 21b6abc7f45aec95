// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace moegate {

/// Quantiles of distributions, each computed once: the rows of a family ask for the same few, and one
/// takes as long as reading a result.
class Quantiles {
 public:
  /// Student's t with `df` degrees of freedom that is exceeded with probability `p`.
  double student(double df, double p);
  /// Whether an F of these degrees of freedom exceeds `ratio` with a probability below `p`.
  bool is_beyond(double ratio, double df1, double df2, double p);

 private:
  using Key = std::array<uint64_t, 3>;  // the bits of what was asked
  std::map<Key, double> students_, fishers_;
};

}  // namespace moegate
