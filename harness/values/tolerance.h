// SPDX-License-Identifier: Apache-2.0
// What is demanded of an output: the limits that an operator states, and the number formats that
// they are about. Every kernel includes this; what judges by it is in accuracy.h and rounding.h,
// which may change without compiling kernels again.
#pragma once

#include <cmath>

namespace moegate {

/// `digits` of significand, the first one included; below 2^least_exponent values are equally far
/// apart (subnormal).
struct FloatType {
  int digits;
  int least_exponent;
  double largest;

  /// The largest relative error of rounding to nearest: 2^-digits.
  constexpr double unit() const { return 1.0 / static_cast<double>(1 << digits); }
  /// Whether an output's own rounding is larger than what sums in fp32 differ by.
  constexpr bool is_narrow() const { return digits < 24; }
};

inline constexpr FloatType kFp32{24, -126, 0x1.fffffep127}, kFp16{11, -14, 65504},
    kBf16{8, -126, 0x1.fep127}, kE4m3{4, -6, 448};

/// By how much a variant may be less accurate than its operator says.
struct Leeway {
  double factor = 1;   // on the operator's ceilings
  double between = 0;  // what it rounds in between itself, beside its operator's Tolerance::between
};

/// Limits for floating outputs; an output passes only when it passes all of them. An operator's
/// ceilings are one constant beside its Problem; they are only ever tightened.
struct Tolerance {
  double rtol = 0;    // of an element: |out - truth| <= atol + rtol |truth|, or
  double atol = 0;    // six times `between` + `by_chance` of its row's rms
  double rel_l2 = 0;  // whole tensor
  double row = 0;     // worst row
  double scale = 0;   // |scale - 1|
  /// What a kernel may round in between, beside the output itself: allowed_beyond() says what
  /// follows. 0: it rounds once. kNotStated: the limits above are all.
  double between = kNotStated;
  static constexpr double kNotStated = -1;
  /// What chance may add to a row, relative and rms, where values are quantised in between: one
  /// next to a tie falls to the other side of it in another order of sums, which a whole row shows.
  /// What is less is no loss of precision against a baseline. A variant with a factor has other
  /// values next to ties.
  double by_chance = 0;

  /// Roundings that do not depend on each other add up as the root of their squares. A variant that
  /// needs wider limits and does not say what it rounds is held to these limits alone.
  Tolerance widened(const Leeway& by) const {
    const bool stated = between != kNotStated && (by.factor == 1 || by.between > 0);
    return {by.factor * rtol,     by.factor * atol,
            by.factor * rel_l2,   by.factor * row,
            by.factor * scale,    stated ? std::hypot(between, by.between) : kNotStated,
            by.factor * by_chance};
  }
  /// Those of an element and of a row alone: what can be demanded of a few rows.
  Tolerance of_rows() const { return {rtol, atol, row, row, row, between, by_chance}; }
};

}  // namespace moegate
