// SPDX-License-Identifier: Apache-2.0
#include "harness/values/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "harness/base/stats.h"

namespace moegate {
namespace {

constexpr double kRmsOfUnit = 0.43;  // rms of a rounding, in units of the largest
constexpr double kLeastOwn =
    0.25;                          // that an output's counts as, where the truth is rounded already
constexpr double kOnce = 0.3;      // the excess of a kernel that rounds once
constexpr double kErrors = 4;      // standard errors that are chance
constexpr int64_t kShortest = 16;  // rows and columns below it show nothing
constexpr double kSmallRow = 1e-2;  // of the mean t^2, that a smaller row or column counts as

constexpr std::array kWorstOf = {&BeyondRounding::misrounded,
                                 &BeyondRounding::row_misrounded,
                                 &BeyondRounding::column_misrounded,
                                 &BeyondRounding::excess,
                                 &BeyondRounding::beyond,
                                 &BeyondRounding::row_scale,
                                 &BeyondRounding::row_scale_most,
                                 &BeyondRounding::column_scale,
                                 &BeyondRounding::column_scale_most};

}  // namespace

void take_worst(BeyondRounding& all, const BeyondRounding& one) {
  if (one.graded == 0) return;
  if (all.graded == 0 || one.by_chance > all.by_chance) {
    all.digits = one.digits, all.by_chance = one.by_chance;
  }
  all.graded += one.graded;
  if (!(one.excess <= all.excess) || all.at_row < 0) {
    all.at_row = one.at_row;
    all.at_column = one.at_column;
  }
  // Written so that NaN wins.
  for (const auto field : kWorstOf) {
    if (!(one.*field <= all.*field) && !std::isnan(all.*field)) all.*field = one.*field;
  }
  if (std::abs(one.common_scale) > std::abs(all.common_scale)) all.common_scale = one.common_scale;
}

BeyondRounding mean_of(std::span<const BeyondRounding> all) {
  BeyondRounding mean;
  double count = 0;
  for (const BeyondRounding& one : all) {
    if (one.graded == 0) continue;
    if (count++ == 0) {
      mean.at_row = one.at_row, mean.at_column = one.at_column;
      mean.digits = one.digits, mean.by_chance = one.by_chance;
    }
    mean.graded += one.graded;
    for (const auto field : kWorstOf) mean.*field += one.*field;
    mean.common_scale += one.common_scale;
  }
  if (count == 0) return mean;
  for (const auto field : kWorstOf) mean.*field /= count;
  mean.common_scale /= count;
  return mean;
}

BeyondRounding allowed_beyond(int digits, double between, double by_chance) {
  constexpr double kOfOneRow = 3;
  const double chance = std::ldexp(by_chance, digits);
  between += by_chance;
  const double shift = std::ldexp(between, digits);
  BeyondRounding allowed{.graded = 1};
  const double b = shift / kRmsOfUnit;
  allowed.excess = std::max(kOnce, 1.2 * std::sqrt(b * b + std::min(2.8 * b, 2.0)));
  allowed.misrounded = std::min(1.0, 0.01 + shift);
  allowed.row_misrounded = std::min(1.0, 0.05 + 2 * (shift + kOfOneRow * chance));
  allowed.column_misrounded = std::min(1.0, 0.05 + 2 * shift);
  allowed.row_scale = allowed.column_scale = 2e-4 + 2 * between;
  allowed.row_scale_most = allowed.column_scale_most = 2e-3 + 4 * between;
  return allowed;
}

double excess_of_few(int64_t graded) {
  constexpr double kSquares = 160;  // of one: 12, times what a large element's ulp counts more
  return std::sqrt(kSquares / static_cast<double>(std::max<int64_t>(graded, 1)));
}

double most_excess(double allowed, int64_t graded) {
  if (allowed <= kOnce) {
    return std::max(allowed * (1 + scatter_of_few(graded)), excess_of_few(graded));
  }
  // Of one element off by an ulp: 12 to 64 times its own rounding's square, which counts for
  // more where the element is large. 100,000 groups of codes of silu_mul_quant stay below it.
  constexpr double kSquare = 60;
  const double one = kSquare / static_cast<double>(std::max<int64_t>(graded, 1));
  const double chance = kErrors * allowed * std::sqrt(one) + kErrors * kErrors / 3 * one;
  return std::sqrt(allowed * allowed + chance);
}

double scatter_of_few(int64_t graded) {
  return 4 * std::sqrt(3.0 / static_cast<double>(std::max<int64_t>(graded, 1)));
}

std::string beyond_allowed(const BeyondRounding& measured, const BeyondRounding& allowed) {
  struct Limit {
    double BeyondRounding::*field;
    const char* what;
    int64_t BeyondRounding::*at;  // null: the whole
  };
  constexpr auto kRow = &BeyondRounding::at_row, kColumn = &BeyondRounding::at_column;
  constexpr int64_t BeyondRounding::*kWhole = nullptr;
  // What names the cause best comes first.
  constexpr Limit kLimits[] = {
      {&BeyondRounding::row_scale, "rows are off by factors, rms", kRow},
      {&BeyondRounding::column_scale, "columns are off by factors, rms", kColumn},
      {&BeyondRounding::excess, "the error beyond its own rounding is, in units of that,", kWhole},
      {&BeyondRounding::misrounded, "not the truth rounded are", kWhole},
      {&BeyondRounding::row_misrounded, "not the truth rounded are, in a row,", kRow},
      {&BeyondRounding::column_misrounded, "not the truth rounded are, in a column,", kColumn},
      {&BeyondRounding::row_scale_most, "a row is off by a factor of", kRow},
      {&BeyondRounding::column_scale_most, "a column is off by a factor of", kColumn}};
  for (const Limit& limit : kLimits) {
    const bool in_units = limit.field == &BeyondRounding::excess;
    const double most =
        in_units ? most_excess(allowed.excess, measured.graded) : allowed.*limit.field;
    if (measured.*limit.field <= most) continue;  // NaN is not
    const std::string place =
        !limit.at ? ""
                  : fmt::format("; {} {} has the most", limit.at == kRow ? "row" : "column",
                                measured.*limit.at);
    const double factor = in_units ? 1 : 100;
    const char* unit = in_units ? "" : " %";
    return fmt::format("{} {:.2g}{}, allowed {:.2g}{}{}", limit.what,
                       factor * (measured.*limit.field), unit, factor * most, unit, place);
  }
  return "";
}

RoundingPass::RoundingPass(int64_t columns, const FloatType& type)
    : columns_(columns), type_(type), round_(type), by_column_(static_cast<size_t>(columns)) {}

void RoundingPass::add_row(const float* out, const double* truth) {
  RowSums row;
  const size_t width = by_column_.size();
  const auto counts = [&](size_t i) { return std::isfinite(out[i]) && std::isfinite(truth[i]); };
  for (size_t i = 0; i < width; ++i) row.t2 += counts(i) ? truth[i] * truth[i] : 0;
  const double least = kUnitOfSums * std::sqrt(row.t2 / static_cast<double>(width));
  const double ulp = 2 * type_.unit();  // of 1, and at most that share of any other value
  for (size_t i = 0; i < width; ++i) {
    if (!counts(i)) continue;
    const double y = out[i], t = truth[i];
    const double rounded = round_(t), d = y - rounded, t2 = t * t, d2 = d * d, dt = d * t;
    const double wrong = std::abs(d) > least ? 1 : 0;
    row.misrounded += wrong, row.d2 += d2, row.dt += dt, row.d2t2 += dt * dt;
    if (std::abs(d) <= ulp * std::abs(rounded)) largest_ulp2_ = std::max(largest_ulp2_, d2);
    row.own2 += (rounded - t) * (rounded - t);
    row.error2 += (y - t) * (y - t);
    row.t4 += t2 * t2;
    Sums& column = by_column_[i];
    column.misrounded += wrong, column.d2 += d2, column.t2 += t2;
    column.dt += dt, column.d2t2 += dt * dt;
  }
  rows_.push_back(row);
}

/// Of all rows, or all columns.
struct RoundingPass::Scales {
  double misrounded = 0, rms = 0, most = 0;
  int64_t at = -1;
};

RoundingPass::Scales RoundingPass::scales_of(std::span<const Sums> all, int64_t elements) {
  Scales scales;
  double t2 = 0, most_d2 = -1, s2 = 0, e2 = 0;
  for (const Sums& one : all) t2 += one.t2;
  const auto count = static_cast<double>(all.size());
  const double least = std::max(kSmallRow * t2 / count, std::numeric_limits<double>::min());
  for (size_t i = 0; i < all.size(); ++i) {
    const Sums& one = all[i];
    if (one.d2 > most_d2) most_d2 = one.d2, scales.at = static_cast<int64_t>(i);
    if (elements < kShortest) continue;
    const double size = std::max(one.t2, least);
    const double scale = std::abs(one.dt) / size, chance = std::sqrt(one.d2t2) / size;
    s2 += scale * scale;
    e2 += chance * chance;
    scales.most = std::max(scales.most, scale - kErrors * chance);
    scales.misrounded = std::max(scales.misrounded, one.misrounded);
  }
  scales.misrounded /= static_cast<double>(std::max(elements, kFewInRow));
  scales.rms = std::sqrt(std::max(0.0, s2 - (1 + kErrors * std::sqrt(2 / count)) * e2) / count);
  return scales;
}

BeyondRounding RoundingPass::result() const {
  BeyondRounding b;
  if (rows_.empty()) return b;
  const std::vector<Sums> rows(rows_.begin(), rows_.end());
  RowSums all;
  for (const RowSums& row : rows_) {
    all.misrounded += row.misrounded, all.d2 += row.d2, all.t2 += row.t2, all.dt += row.dt;
    all.own2 += row.own2, all.t4 += row.t4;
  }
  const auto height = static_cast<int64_t>(rows.size());
  const int64_t elements = height * columns_;
  // Of normal values sum t^4 is three times (sum t^2)^2 / n.
  const double by_size = all.t4 > 0 ? std::round(3 * all.t2 * all.t2 / all.t4) : 1;
  b.digits = type_.digits;
  b.graded = std::clamp<int64_t>(static_cast<int64_t>(by_size), 1, elements);
  const double tiny = std::numeric_limits<double>::min();
  const double least = type_.is_narrow() ? kLeastOwn * type_.unit() : kUnitOfFp32;
  const double own2 = std::max({all.own2, least * least * all.t2, tiny});
  const double d2 = std::max(0.0, all.d2 - largest_ulp2_);
  b.excess = std::sqrt(d2 / own2);
  b.beyond = std::sqrt(d2 / std::max(all.t2, tiny));
  b.common_scale = all.dt / std::max(all.t2, tiny);
  const Scales by_row = scales_of(rows, columns_), by_column = scales_of(by_column_, height);
  b.row_scale = by_row.rms, b.row_scale_most = by_row.most, b.at_row = by_row.at;
  b.column_scale = by_column.rms, b.column_scale_most = by_column.most, b.at_column = by_column.at;
  if (!type_.is_narrow()) return b;
  b.misrounded = all.misrounded / static_cast<double>(std::max(elements, kFewInAll));
  b.row_misrounded = by_row.misrounded;
  b.column_misrounded = by_column.misrounded;
  return b;
}

std::vector<double> RoundingPass::row_errors() const {
  const auto columns = static_cast<double>(columns_);
  std::vector<double> errors, sizes;
  for (const RowSums& row : rows_) {
    errors.push_back(std::sqrt(row.error2 / columns));
    sizes.push_back(std::sqrt(row.t2 / columns));
  }
  if (errors.empty()) return errors;
  // The floor keeps an all-zero row from dividing by nothing.
  const double floor = std::max(1e-3 * median(sizes), std::numeric_limits<double>::min());
  for (size_t i = 0; i < errors.size(); ++i) errors[i] /= std::max(sizes[i], floor);
  return errors;
}

}  // namespace moegate
