// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/ratchet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace moegate {
namespace {

using Statistic = double BeyondRounding::*;

struct Measure {
  Statistic field;
  double matters, growth;
  /// What a kernel with an error of its own matters from: by this share of the base's.
  double of_base = 0;
};
constexpr double kScaleMatters = 1e-4, kScaleGrowth = 2;
constexpr double kScaleOfBase = 0.05, kMostOfBase = 0.25;
constexpr Measure kMeasures[] = {
    {&BeyondRounding::excess, 0.1, 1.25},
    {&BeyondRounding::misrounded, 0.005, 1.5},
    {&BeyondRounding::row_misrounded, 0.03, 1.5},
    {&BeyondRounding::column_misrounded, 0.03, 1.5},
    {&BeyondRounding::row_scale, kScaleMatters, kScaleGrowth, kScaleOfBase},
    {&BeyondRounding::row_scale_most, kScaleMatters, kScaleGrowth, kMostOfBase},
    {&BeyondRounding::column_scale, kScaleMatters, kScaleGrowth, kScaleOfBase},
    {&BeyondRounding::column_scale_most, kScaleMatters, kScaleGrowth, kMostOfBase},
};

/// By what one rule says, and by what few elements scatter. Written so that NaN is worse.
bool grew(const Measure& rule, const BeyondRounding& from, const BeyondRounding& to) {
  const double most = (rule.growth + scatter_of_few(to.graded)) * (from.*rule.field);
  const double own = to.excess > 0 ? to.beyond / to.excess : 0;  // of the output's rounding
  const double chance =
      to.by_chance > 0 ? allowed_beyond(to.digits, 0, to.by_chance).*rule.field : 0;
  const double few = rule.field == &BeyondRounding::excess ? excess_of_few(to.graded) : 0;
  const double matters = std::max({chance, few, rule.matters + rule.of_base * from.excess * own});
  return !(to.*rule.field <= matters) && !(to.*rule.field <= most);
}

/// Both sides of a comparison, as the sentences ask about them.
struct PrecisionLoss {
  const BeyondRounding &base, &head;

  bool anything() const {
    return std::ranges::any_of(kMeasures, [&](const Measure& r) { return grew(r, base, head); });
  }
  bool worse(Statistic field) const {
    const Measure* rule = std::ranges::find(kMeasures, field, &Measure::field);
    return grew(*rule, base, head);
  }
  /// Whether factors of this size make up for what is off. One that is smaller than an ulp moves
  /// s |t| / ulp of the elements, by an ulp each; an ulp is about 3 times the own rounding's error.
  bool explains(double scale) const {
    constexpr double kUlp = 3, kMost = 0.3;
    const double own = head.excess > 0 ? head.beyond / head.excess : 0, s = std::abs(scale);
    const double moved = std::max(s * s, s * kUlp * own);
    return moved >= kMost * head.beyond * head.beyond;
  }
  std::string percents(Statistic field) const {
    return fmt::format("{:.2g} %, was {:.2g} %", 100 * (head.*field), 100 * (base.*field));
  }
  /// Of the row or column with the largest factor, or the most misrounded elements.
  std::string one(const char* what, int64_t index, Statistic scale, Statistic misrounded) const {
    const std::string by = worse(scale) ? fmt::format("is off by a factor ({})", percents(scale))
                                        : fmt::format(
                                              "is rounded otherwise than the others (of its "
                                              "elements {} are not the truth rounded)",
                                              percents(misrounded));
    return fmt::format("one {} {}; {} {} has most of the error", what, by, what, index);
  }
};

/// The structure that explains the error best, the largest one first.
std::string structure(const PrecisionLoss& c) {
  const BeyondRounding& h = c.head;
  const bool rows = c.worse(&BeyondRounding::row_scale);
  const bool columns = c.worse(&BeyondRounding::column_scale);
  constexpr double kSame = 0.7;  // of all rows' factors are one factor
  if ((rows || columns) && c.explains(h.common_scale) &&
      std::abs(h.common_scale) >= kSame * h.row_scale) {
    return fmt::format(
        "the whole output is off by one factor ({:.2g} %): a scale factor lost precision",
        100 * std::abs(h.common_scale));
  }
  const bool all = c.worse(&BeyondRounding::excess) || c.worse(&BeyondRounding::misrounded);
  if (rows && all && c.explains(h.row_scale) && h.row_scale >= h.column_scale) {
    return fmt::format(
        "each row is off by its own factor (rms {}): a routing weight or a per-token scale lost "
        "precision",
        c.percents(&BeyondRounding::row_scale));
  }
  if (columns && all && c.explains(h.column_scale)) {
    return fmt::format(
        "each column is off by its own factor (rms {}): a scale of the weights lost precision",
        c.percents(&BeyondRounding::column_scale));
  }
  if (all) {
    return fmt::format(
        "the error is spread over the whole output (beyond its own rounding {:.2g} of that, was "
        "{:.2g}): sums or values in between are rounded to fewer digits, or the output not to "
        "nearest",
        h.excess, c.base.excess);
  }
  if (c.worse(&BeyondRounding::row_misrounded) || c.worse(&BeyondRounding::row_scale_most)) {
    return c.one("row", h.at_row, &BeyondRounding::row_scale_most, &BeyondRounding::row_misrounded);
  }
  return c.one("column", h.at_column, &BeyondRounding::column_scale_most,
               &BeyondRounding::column_misrounded);
}

constexpr double kExact = 0x1p-60;  // an error of nothing, where a logarithm is taken of it

constexpr double kMeanBits = 0.5;
constexpr double kSeedBits = 0.25;
constexpr double kSeedShare = 0.8;
constexpr double kRowGrowth = 2;
constexpr double kBiasGrowth = 2e-3;
constexpr double kTinyBias = 1e-4, kTinyBiasGrowth = 5e-4;  // of a base that has hardly any
constexpr double kUnpairedBits = 2;  // other seeds of the same kind move an error by less
constexpr double kTinyError = 1e-6;
constexpr double kTinyRow = 3e-6;

double bits(double base, double head) {
  return std::log2(std::max(head, kExact) / std::max(base, kExact));
}

double bits(const SeedError& base, const SeedError& head) {
  return base.hash == head.hash ? 0 : bits(base.rel_l2, head.rel_l2);
}

using Pair = std::pair<const SeedError*, const SeedError*>;  // base, head

std::vector<Pair> common_seeds(const Side& base, const Side& head) {
  std::vector<Pair> pairs;
  for (const SeedError& h : head.seeds) {
    const auto b = std::ranges::find(base.seeds, h.seed, &SeedError::seed);
    if (b != base.seeds.end()) pairs.emplace_back(&*b, &h);
  }
  return pairs;
}

double mean_bits(const std::vector<Pair>& pairs) {
  double sum = 0;
  for (const auto& [base, head] : pairs) sum += bits(*base, *head);
  return sum / static_cast<double>(pairs.size());
}

/// The largest over the seeds, of base and of head; NaN is the largest.
std::pair<double, double> largest(const std::vector<Pair>& pairs, double SeedError::*field) {
  double base = 0, head = 0;
  for (const auto& [b, h] : pairs) {
    if (!(std::abs(b->*field) <= base)) base = std::abs(b->*field);
    if (!(std::abs(h->*field) <= head)) head = std::abs(h->*field);
  }
  return {base, head};
}

// Every comparison below is written so that NaN is worse.

std::string worse_on_average(const std::vector<Pair>& pairs) {
  const auto [base, head] = largest(pairs, &SeedError::rel_l2);
  if (base < kTinyError && head < kTinyError) return "";
  const double mean = mean_bits(pairs);
  const auto worse = std::ranges::count_if(
      pairs, [](const Pair& p) { return !(bits(*p.first, *p.second) <= kSeedBits); });
  const bool few = static_cast<double>(worse) < kSeedShare * static_cast<double>(pairs.size());
  if (mean <= kMeanBits || (few && std::isfinite(mean))) return "";
  return fmt::format(
      "error {:.2g} against {:.2g}: {:+.2f} bits on average, worse on {} of {} seeds", head, base,
      mean, worse, pairs.size());
}

std::string worse_row(const std::vector<Pair>& pairs) {
  const auto [base, head] = largest(pairs, &SeedError::worst_row);
  if (head < kTinyRow || head <= kRowGrowth * base) return "";
  return fmt::format("worst row's error {:.2g} against {:.2g}, more than {:g} times as much", head,
                     base, kRowGrowth);
}

std::string worse_bias(const std::vector<Pair>& pairs) {
  const auto [base, head] = largest(pairs, &SeedError::bias);
  const double most = base < kTinyBias ? kTinyBiasGrowth : kBiasGrowth;
  if (head - base <= most) return "";
  return fmt::format("scale off by {:.2g} against {:.2g}, more than {:g} further", head, base,
                     most);
}

/// What is compared of the two: on common seeds that, else what each has.
std::pair<BeyondRounding, BeyondRounding> precision(const Side& base, const Side& head) {
  const auto pairs = common_seeds(base, head);
  if (pairs.empty()) return {base.rounding, head.rounding};
  std::vector<BeyondRounding> of_base, of_head;
  for (const auto& [b, h] : pairs) {
    of_base.push_back(b->rounding);
    of_head.push_back(h->rounding);
  }
  return {mean_of(of_base), mean_of(of_head)};
}

std::string unpaired(const Side& base, const Side& head, double most) {
  const double change = bits(base.error, head.error);
  if (change <= most || head.error - base.error <= kTinyError) return "";
  return fmt::format("error {:.2g} against {:.2g} in the baseline, {:+.1f} bits", head.error,
                     base.error, change);
}

}  // namespace

std::string less_precise(const BeyondRounding& base, const BeyondRounding& head) {
  if (base.graded == 0 || head.graded == 0) return "";
  const PrecisionLoss loss{base, head};
  return loss.anything() ? structure(loss) : "";
}

std::string more_precise(const BeyondRounding& base, const BeyondRounding& head) {
  if (base.graded == 0 || head.graded == 0) return "";
  struct Named {
    const char* what;
    Statistic field;
  };
  constexpr Named kNamed[] = {{"excess error", &BeyondRounding::excess},
                              {"share of misrounded elements", &BeyondRounding::misrounded},
                              {"factors of rows", &BeyondRounding::row_scale},
                              {"factors of columns", &BeyondRounding::column_scale}};
  if (PrecisionLoss{base, head}.anything()) return "";
  for (const auto& [what, field] : kNamed) {
    if (!PrecisionLoss{head, base}.worse(field)) continue;
    return fmt::format("{} {:.2g} -> {:.2g}", what, base.*field, head.*field);
  }
  return "";
}

std::optional<double> accuracy_change_bits(const Side& base, const Side& head) {
  const auto pairs = common_seeds(base, head);
  if (pairs.empty()) return std::nullopt;
  return mean_bits(pairs);
}

bool bit_identical(const Side& base, const Side& head) {
  return !base.out.empty() && base.out == head.out;
}

bool outputs_differ(const Side& base, const Side& head) {
  if (!base.deterministic || !head.deterministic) return false;
  return std::ranges::any_of(common_seeds(base, head),
                             [](const Pair& p) { return p.first->hash != p.second->hash; });
}

std::string maybe_worse_output(const Side& base, const Side& head) {
  const bool know_precision = base.rounding.graded > 0 && head.rounding.graded > 0;
  if (know_precision || !common_seeds(base, head).empty()) return "";
  return unpaired(base, head, kMeanBits);
}

std::string worse_output(const Side& base, const Side& head) {
  if (base.deterministic && !head.deterministic) {
    return "outputs differ between launches on the same input; the baseline's did not";
  }
  if (base.invariance == Invariance::kept && head.invariance == Invariance::broken) {
    return "a token's output depends on its batch; the baseline's did not";
  }
  const auto pairs = common_seeds(base, head);
  const auto [of_base, of_head] = precision(base, head);
  if (of_base.graded > 0 && of_head.graded > 0) {
    const std::string why = less_precise(of_base, of_head);
    if (!why.empty() || pairs.empty()) return why;
    return worse_row(pairs);
  }
  if (pairs.empty()) return unpaired(base, head, kUnpairedBits);
  for (const auto& worse : {worse_on_average, worse_row, worse_bias}) {
    const std::string why = worse(pairs);
    if (!why.empty()) return why;
  }
  return "";
}

std::string better_output(const Side& base, const Side& head) {
  const auto [of_base, of_head] = precision(base, head);
  return more_precise(of_base, of_head);
}

}  // namespace moegate
