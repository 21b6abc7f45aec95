// SPDX-License-Identifier: Apache-2.0
// The floating types of outputs as numbers: which values they have, and the nearest one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

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

/// The nearest value, ties to even; the largest for what is beyond. Rounds once, where double to float
/// to the type would round twice.
class RoundTo {
 public:
  explicit RoundTo(const FloatType& type)
      : largest_(type.largest),
        least_normal_(std::ldexp(1.0, type.least_exponent)),
        subnormal_shift_(std::ldexp(1.5, 52 + type.least_exponent - type.digits + 1)),
        dropped_(53 - type.digits) {}

  double operator()(double x) const {
    const double size = std::abs(x);
    if (!(size < largest_)) return std::isnan(x) ? x : std::copysign(largest_, x);
    // Adding a number whose last digit is the type's leaves no room for further ones.
    if (size < least_normal_) return (x + subnormal_shift_) - subnormal_shift_;
    const auto bits = std::bit_cast<uint64_t>(x);
    const uint64_t half = (uint64_t{1} << (dropped_ - 1)) - 1 + (bits >> dropped_ & 1);
    return std::bit_cast<double>((bits + half) >> dropped_ << dropped_);
  }

 private:
  double largest_, least_normal_, subnormal_shift_;
  int dropped_;  // digits of a double's
};

}  // namespace moegate
