// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/ratchet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/judge/precision.h"

namespace moegate {
namespace {

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
    const auto b = std::find_if(base.seeds.begin(), base.seeds.end(),
                                [&](const SeedError& e) { return e.seed == h.seed; });
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
  const auto worse = std::count_if(pairs.begin(), pairs.end(), [](const Pair& p) {
    return !(bits(*p.first, *p.second) <= kSeedBits);
  });
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

bool know_precision(const Side& base, const Side& head) {
  const auto [of_base, of_head] = precision(base, head);
  return of_base.graded > 0 && of_head.graded > 0;
}

std::string unpaired(const Side& base, const Side& head, double most) {
  const double change = bits(base.error, head.error);
  if (change <= most || head.error - base.error <= kTinyError) return "";
  return fmt::format("error {:.2g} against {:.2g} in the baseline, {:+.1f} bits", head.error,
                     base.error, change);
}

}  // namespace

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
  if (!common_seeds(base, head).empty() || know_precision(base, head)) return "";
  return unpaired(base, head, kMeanBits);
}

std::string worse_output(const Side& base, const Side& head) {
  if (base.deterministic && !head.deterministic) {
    return "outputs differ between launches on the same input; the baseline's did not";
  }
  const auto pairs = common_seeds(base, head);
  const bool known = know_precision(base, head);
  if (known) {
    const auto [of_base, of_head] = precision(base, head);
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
