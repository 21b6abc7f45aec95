// SPDX-License-Identifier: Apache-2.0
#include "harness/values/accuracy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace moegate {
namespace {

class Where {
 public:
  Where(const Place& place, int64_t width) : place_(place), width_(width) {}

  std::string row(int64_t i) const {
    const int64_t row = in(place_.rows, i);
    const std::string name = place_.name ? place_.name(row) : "";
    return fmt::format("row {}{}", row, name.empty() ? "" : " (" + name + ")");
  }
  std::string column(int64_t i) const { return fmt::format("column {}", in(place_.columns, i)); }
  std::string element(int64_t index) const {
    return row(index / width_) + ", " + column(index % width_);
  }

 private:
  static int64_t in(const std::vector<int64_t>& all, int64_t i) {
    return all.empty() ? i : all.at(static_cast<size_t>(i));
  }
  const Place& place_;
  int64_t width_;
};

/// The rows and columns that elements outside of a tolerance are in.
struct Outside {
  int64_t row = -1, column = -1;  // of the first
  bool one_row = true, one_column = true;

  void add(int64_t r, int64_t c) {
    if (row < 0) row = r, column = c;
    one_row = one_row && r == row;
    one_column = one_column && c == column;
  }
  /// Of several elements that have one in common.
  std::string text(const Where& where, int64_t rows, int64_t columns) const {
    if (one_row == one_column) return "";
    return one_row ? fmt::format(", all in {} of {}", where.row(row), rows)
                   : fmt::format(", all in {} of {}", where.column(column), columns);
  }
};

/// Sums over the elements that are finite on both sides; what is not finite is counted apart and
/// fails on its own, so that one NaN does not hide how wrong the rest is.
struct Sums {
  double error = 0, out = 0, truth = 0, product = 0;  // of squares, and out * truth
};

void finish(Accuracy& a, const Sums& s) {
  const double tiny = std::numeric_limits<double>::min();
  a.rel_l2 = std::sqrt(s.error) / std::max(std::sqrt(s.truth), tiny);
  if (s.truth == 0) a.rel_l2 = s.error == 0 ? 0 : std::numeric_limits<double>::infinity();
  const double norms = std::sqrt(s.out) * std::sqrt(s.truth);
  a.cosine = norms > 0 ? s.product / norms : (s.error == 0 ? 1 : 0);
  a.scale = s.truth > 0 ? s.product / s.truth : (s.error == 0 ? 1 : 0);
}

void summarise_rows(Accuracy& a, std::vector<double> errors) {
  if (errors.empty()) return;
  const auto rank = static_cast<size_t>(std::ceil(0.999 * static_cast<double>(errors.size())));
  const auto p999 = errors.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(errors.begin(), p999, errors.end());
  a.row_p999 = *p999;
  a.worst_row = *std::max_element(p999, errors.end());
}

/// Row by row: errors beside sizes, and what the output's own rounding does not explain.
void grade(Accuracy& a, std::span<const float> out, std::span<const double> truth, int64_t width,
           const Tolerance& tolerance, const FloatType& type, const Place& place) {
  RoundingPass pass(width, type);
  const auto columns = static_cast<size_t>(width);
  for (size_t i = 0; i + columns <= out.size(); i += columns) {
    pass.add_row(out.data() + i, truth.data() + i);
  }
  summarise_rows(a, pass.row_errors());
  a.rounding = pass.result();
  a.rounding.by_chance = tolerance.by_chance;
  a.between = type.is_narrow() ? tolerance.between : Tolerance::kNotStated;
  if (a.rounding.graded == 0) return;
  const auto whole = [](const std::vector<int64_t>& all, int64_t& i) {
    if (!all.empty() && i >= 0) i = all.at(static_cast<size_t>(i));
  };
  whole(place.rows, a.rounding.at_row);
  whole(place.columns, a.rounding.at_column);
}

/// The error that roundings in between, and chance, may make of one element of a row: they are as
/// large for a small element as for a large one. One normal value in 5 10^8 is off by six times its
/// rms.
double noise_of(std::span<const double> row, const Tolerance& tolerance) {
  constexpr double kTail = 6;
  if (tolerance.between < 0) return 0;
  const double rms = tolerance.between + tolerance.by_chance;
  if (rms == 0) return 0;
  double squares = 0;
  for (const double t : row) squares += std::isfinite(t) ? t * t : 0;
  return kTail * rms * std::sqrt(squares / static_cast<double>(row.size()));
}

std::string describe(const Accuracy& a, const Tolerance& t, const Where& where,
                     const std::string& all_in, double out, double truth) {
  const std::string worst = where.element(std::max<int64_t>(a.worst_index, 0));
  if (a.nonfinite > 0) {
    return fmt::format(
        "{}: {} of {} elements are not finite where the truth is (or the reverse), "
        "first at {} ({} for {})",
        a.output, a.nonfinite, a.elements, worst, out, truth);
  }
  if (a.mismatches > 0) {
    return fmt::format(
        "{}: {} of {} elements off by more than {:.1e} + {:.1e}*|truth|{}, worst at {} "
        "({:.7g} for {:.7g})",
        a.output, a.mismatches, a.elements, t.atol, t.rtol, all_in, worst, out, truth);
  }
  const std::string beyond = a.beyond();
  if (!beyond.empty()) return fmt::format("{}: {}", a.output, beyond);
  return fmt::format(
      "{}: relative L2 error {:.2e} (limit {:.1e}), worst row {:.2e} (limit {:.1e}), scale {:.6f} "
      "(limit 1 ± {:.1e})",
      a.output, a.rel_l2, t.rel_l2, a.worst_row, t.row, a.scale, t.scale);
}

/// A comparison of `out` elements with `truth`; `why` is set when they do not even agree in number.
Accuracy begin(std::string output, size_t out, size_t truth) {
  Accuracy a;
  a.output = std::move(output);
  a.elements = static_cast<int64_t>(truth);
  if (out != truth) a.why = fmt::format("{}: {} elements, the truth has {}", a.output, out, truth);
  return a;
}

/// weight_of(), of elements of any type.
template <class T>
double weight_of_any(std::span<const T> truth) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  constexpr double kNotANumber = 3, kInfinite = 5;
  double sum = 0;
  uint64_t place = 0;
  for (const T t : truth) {
    const double weight = 1 + static_cast<double>((place += kGolden) >> 32) * 0x1p-32;
    const auto value = static_cast<double>(t);
    const double size = std::isfinite(value) ? std::abs(value)
                        : std::isnan(value)  ? kNotANumber
                                             : kInfinite;
    sum += weight * (value < 0 ? 1.5 * size : size);
  }
  return sum;
}

}  // namespace

BeyondRounding mean_rounding(std::span<const SeedError> seeds) {
  std::vector<BeyondRounding> all;
  for (const SeedError& seed : seeds) all.push_back(seed.rounding);
  return mean_of(all);
}

uint64_t pack_terms(uint64_t tensors, uint64_t limits, uint64_t cost) {
  constexpr uint64_t kLow = 0xfffff;  // 20 bits each, and 24 of the first
  return tensors << 40 | (limits & kLow) << 20 | (cost & kLow);
}

std::string other_question(const SeedError& base, const SeedError& head) {
  if (base.terms == 0 || head.terms == 0) return "";
  const auto differ = [&](int shift, int bits) {
    return ((base.terms ^ head.terms) >> shift & ((uint64_t{1} << bits) - 1)) != 0;
  };
  if (differ(40, 24)) return "tensors";  // all else follows
  std::vector<std::string> what;
  if (differ(20, 20)) what.emplace_back("tolerances");
  if (differ(0, 20)) what.emplace_back("cost");
  constexpr double kRounding = 1e-9;
  const double larger = std::max(base.truth, head.truth);
  if (base.inputs != head.inputs) {
    what.emplace_back("inputs");
  } else if (!(std::abs(base.truth - head.truth) <= kRounding * larger)) {
    what.emplace_back("truth");
  }
  return fmt::format("{}", fmt::join(what, ", "));
}

double weight_of(std::span<const double> truth) {
  return weight_of_any(truth);
}

std::string Accuracy::beyond() const {
  return between < 0 ? "" : beyond_allowed(rounding, allowed());
}

BeyondRounding Accuracy::allowed() const {
  return between < 0 ? BeyondRounding{}
                     : allowed_beyond(rounding.digits, between, rounding.by_chance);
}

Accuracy compare_floats(std::string output, std::span<const float> out,
                        std::span<const double> truth, int64_t row, const Tolerance& tolerance,
                        const FloatType& type, const Place& place) {
  Accuracy a = begin(std::move(output), out.size(), truth.size());
  if (!a.why.empty()) return a;
  a.truth = weight_of(truth);
  const int64_t width = std::max<int64_t>(row, 1);
  const auto columns = static_cast<size_t>(width);
  Outside outside;
  Sums sums;
  double worst_excess = -1, noise = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i % columns == 0) noise = noise_of(truth.subspan(i, columns), tolerance);
    const double o = out[i], t = truth[i];
    if (!std::isfinite(o) || !std::isfinite(t)) {
      const bool same = o == t || (std::isnan(o) && std::isnan(t));
      if (!same && a.nonfinite++ == 0) a.worst_index = static_cast<int64_t>(i);
      continue;
    }
    const double error = std::abs(o - t);
    const double limit = std::max(tolerance.atol + tolerance.rtol * std::abs(t), noise);
    if (!(error <= limit)) {
      ++a.mismatches;
      outside.add(static_cast<int64_t>(i / columns), static_cast<int64_t>(i % columns));
    }
    a.max_abs = std::max(a.max_abs, error);
    const double size = std::max(std::abs(t), tolerance.atol);
    if (size > 0) a.max_rel = std::max(a.max_rel, error / size);
    if (a.nonfinite == 0 && error - limit > worst_excess) {
      worst_excess = error - limit;
      a.worst_index = static_cast<int64_t>(i);
    } else if (a.worst_index < 0) {
      a.worst_index = static_cast<int64_t>(i);
    }
    sums.error += error * error;
    sums.out += o * o;
    sums.truth += t * t;
    sums.product += o * t;
  }
  finish(a, sums);
  grade(a, out, truth, width, tolerance, type, place);
  a.ok = a.nonfinite == 0 && a.mismatches == 0 && a.rel_l2 <= tolerance.rel_l2 &&
         a.worst_row <= tolerance.row && std::abs(a.scale - 1) <= tolerance.scale &&
         a.beyond().empty();
  if (!a.ok && !out.empty()) {
    const auto worst = static_cast<size_t>(std::max<int64_t>(a.worst_index, 0));
    const Where where(place, width);
    const std::string all_in = outside.text(where, static_cast<int64_t>(out.size()) / width, width);
    a.why = describe(a, tolerance, where, all_in, out[worst], truth[worst]);
  }
  return a;
}

Accuracy compare_exact(std::string output, std::span<const int32_t> out,
                       std::span<const int32_t> truth) {
  Accuracy a = begin(std::move(output), out.size(), truth.size());
  if (!a.why.empty()) return a;
  a.truth = weight_of_any(truth);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == truth[i]) continue;
    if (a.mismatches++ == 0) a.worst_index = static_cast<int64_t>(i);
    a.max_abs = std::max(a.max_abs, std::abs(double{static_cast<double>(out[i])} - truth[i]));
  }
  a.ok = a.mismatches == 0;
  if (!a.ok) {
    const auto first = static_cast<size_t>(a.worst_index);
    a.why = fmt::format("{}: {} of {} elements differ, first at {} ({:#x} for {:#x})", a.output,
                        a.mismatches, a.elements, first, static_cast<uint32_t>(out[first]),
                        static_cast<uint32_t>(truth[first]));
  }
  return a;
}

Accuracy compare_zero(std::string output, std::span<const uint8_t> out) {
  Accuracy a;
  a.output = std::move(output);
  a.elements = static_cast<int64_t>(out.size());
  // Block by block, because a branch on every byte would make this the longest part of a large
  // check.
  constexpr size_t kBlock = 4096;
  for (size_t start = 0; start < out.size(); start += kBlock) {
    const auto block = out.subspan(start, std::min(kBlock, out.size() - start));
    uint8_t any = 0;
    for (const uint8_t b : block) any |= b;
    if (any == 0) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] != 0 && a.mismatches++ == 0) a.worst_index = static_cast<int64_t>(start + i);
    }
  }
  a.ok = a.mismatches == 0;
  if (!a.ok) {
    a.why = fmt::format("{}: {} of {} bytes are not zero, first at {} ({:#04x})", a.output,
                        a.mismatches, a.elements, a.worst_index,
                        out[static_cast<size_t>(a.worst_index)]);
  }
  return a;
}

}  // namespace moegate
