// SPDX-License-Identifier: Apache-2.0
// From a number known when a launch is asked for to one that a kernel was compiled for. Host code.
#pragma once

namespace moegate::cuda {

/// Calls f.operator()<N>() for the one of the numbers N that `n` is, or else for the last of them,
/// and returns what it returns.
template <int kNumber, int... kOthers, class F>
auto with_rows(int n, const F& f) {
  if constexpr (sizeof...(kOthers) == 0) {
    return f.template operator()<kNumber>();
  } else {
    return n == kNumber ? f.template operator()<kNumber>() : with_rows<kOthers...>(n, f);
  }
}

}  // namespace moegate::cuda
