// SPDX-License-Identifier: Apache-2.0
// What of an output's error its own rounding does not explain. A kernel that sums in fp32 and
// rounds once writes r(t), the truth rounded to the output's type, in all but a few elements of ten
// thousand: compared with r(t) instead of t, everything else stands out. Pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/values/tolerance.h"

namespace moegate {

/// The nearest value, ties to even; the largest for what is beyond. Rounds once, where double to
/// float to the type would round twice.
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

/// Output y [rows, columns], truth t, d = y - r(t). Of seeds or processes: the mean.
///
/// One element can be off by an ulp by chance, so that few of them show nothing: a share is at
/// least of kFewInRow elements of a row or column, kFewInAll of an output, and an excess has to be
/// more than excess_of_few(). The largest that is off by one ulp does not count in ||d||: few
/// elements carry silu times a gate, and one of these rounded the other way would be the excess of
/// a whole kernel. Off by less than kUnitOfSums of its row's rms no element is misrounded: sums in
/// fp32 end there (a saturated sigmoid times a gate is 1e-38 or 0). Of a scale
/// s = <d, t> / <t, t> counts what its standard error e = sqrt(sum d^2 t^2) / <t, t> does not
/// explain: of one row max(0, |s| - 4 e), of n rows sqrt(mean s^2 - (1 + 4 sqrt(2 / n)) mean e^2).
///
/// fp32 has no rounding of its own that matters: shares are 0, and the excess is in units of
/// kUnitOfFp32 of ||t||, a tenth of which is what other orders of summation make.
struct BeyondRounding {
  /// Elements, those that carry the output: at most 3 (sum t^2)^2 / sum t^4, which is all of normal
  /// ones. 0: integers, or an older program.
  int64_t graded = 0;
  double misrounded = 0;                             // share of elements with d != 0, see above
  double row_misrounded = 0, column_misrounded = 0;  // of the worst row, column
  double excess = 0;        // ||d|| / ||r(t) - t||: in units of the output's own rounding
  double beyond = 0;        // ||d|| / ||t||
  double common_scale = 0;  // <d, t> / <t, t>
  double row_scale = 0, row_scale_most = 0;        // of rows: rms, largest
  double column_scale = 0, column_scale_most = 0;  // of columns
  /// Digits of the output's type, and what the operator says that chance may add
  /// (Tolerance::by_chance).
  int digits = 0;
  double by_chance = 0;
  int64_t at_row = -1, at_column = -1;  // with the most of ||d||; of several seeds: the first's
};
constexpr int64_t kFewInRow = 256, kFewInAll = 4096;
constexpr double kUnitOfFp32 = 1e-5, kUnitOfSums = 0x1p-24;

/// The worst of each, of two outputs; NaN is worse than anything.
void take_worst(BeyondRounding& all, const BeyondRounding& one);
/// The mean of those that are graded.
BeyondRounding mean_of(std::span<const BeyondRounding> all);

/// What is allowed of a kernel that rounds once, and in between as it states: `between` is the
/// error that these roundings add to an element, relative and rms (h in bf16: 2^-8 x 0.43). With u
/// = 2^-digits of the output's type, whose rounding makes an error of 0.43 u rms:
/// - misrounded: 1 % + between / u; a row, a column: 5 % + 2 between / u. A shift by s crosses a
///   rounding boundary with probability s / ulp, and |t| / ulp is 0.72 / 2u on average.
/// - excess, with b = between / 0.43 u: 0.3, or 1.2 sqrt(b^2 + min(2.8 b, 2)) if that is more. What
///   crosses a boundary is off by a whole ulp, whose square is 12 times that of the own rounding;
///   a large shift has the own rounding twice, in the output and in r(t).
/// - scales: 2e-4 + 2 between; the largest 2e-3 + 4 between
/// What chance adds (Tolerance::by_chance) counts as between does. In one row it counts four times
/// where elements are counted: values have long tails, and of SwiGLU of normal ones one in 100,000
/// adds ten times by_chance, which rounds half of its row another way.
BeyondRounding allowed_beyond(int digits, double between, double by_chance = 0);
/// The excess that a few elements make which are off by an ulp by chance: 0.4 of 1,000 elements,
/// 0.1 of 16,000.
double excess_of_few(int64_t graded);
/// The excess that so many elements may show where an output shows `allowed` of many. Roundings in
/// between carry elements over a boundary, few of them, each by a whole ulp: their squares add up
/// to a sum of Poisson's kind, of which this is four standard errors (Bernstein's inequality).
double most_excess(double allowed, int64_t graded);
/// By what share the excess of so many elements scatters: four standard errors of a mean square of
/// normal ones.
double scatter_of_few(int64_t graded);
/// What exceeds it, with numbers; empty: nothing.
std::string beyond_allowed(const BeyondRounding& measured, const BeyondRounding& allowed);

/// Sums up an output row by row, in one pass.
class RoundingPass {
 public:
  RoundingPass(int64_t columns, const FloatType& type);
  /// Elements that are not finite on both sides do not count.
  void add_row(const float* out, const double* truth);
  BeyondRounding result() const;
  /// Of each row: Accuracy's error of a row (accuracy.h).
  std::vector<double> row_errors() const;

 private:
  /// Of a row or of a column.
  struct Sums {
    double misrounded = 0, d2 = 0, t2 = 0, dt = 0, d2t2 = 0;
  };
  struct RowSums : Sums {
    double own2 = 0, error2 = 0, t4 = 0;  // of r(t) - t, of out - t
  };
  struct Scales;
  static Scales scales_of(std::span<const Sums> all, int64_t elements);

  int64_t columns_;
  FloatType type_;
  RoundTo round_;
  std::vector<RowSums> rows_;
  std::vector<Sums> by_column_;
  double largest_ulp2_ = 0;  // the largest d^2 of an element that is off by one ulp
};

}  // namespace moegate
