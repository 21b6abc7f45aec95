// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/cause_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "harness/cause/derived_counters.h"

namespace moegate {
namespace {

/// The largest unit in which the larger number is 1 at least.
struct ReadUnit {
  double factor;
  const char* name;
};

ReadUnit read_unit(double largest, const std::string& unit) {
  constexpr double kKilo = 1e3, kMega = 1e6, kGiga = 1e9;
  const auto scaled = [&](const std::array<const char*, 4>& names) -> ReadUnit {
    if (largest >= kGiga) return {kGiga, names[3]};
    if (largest >= kMega) return {kMega, names[2]};
    if (largest >= kKilo) return {kKilo, names[1]};
    return {1, names[0]};
  };
  if (unit == "bytes" || unit == "byte") return scaled({" B", " KB", " MB", " GB"});
  if (unit == "ns") return scaled({" ns", " us", " ms", " s"});
  if (unit == "%" || unit == "pct") return {1, " %"};
  return scaled({"", " k", " M", " G"});
}

std::string number_text(double value) {
  const double size = std::abs(value);
  constexpr double kThreeDigits = 100;
  return size >= kThreeDigits ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

bool CauseQuestion::even() const {
  return std::abs(effect) < kEvenEffect;
}

bool CauseQuestion::same_way(double worse) const {
  return even() || worse * effect > 0;
}

bool CauseQuestion::explains(double worse, double least) const {
  return same_way(worse) && std::abs(worse) >= std::max(least, kShareOfEffect * std::abs(effect));
}

std::vector<PairedCounter> paired_counters(const CauseQuestion& q) {
  std::vector<PairedCounter> all;
  for (const PairedMetric& m : paired_metrics(q.base.counted, q.head.counted)) {
    if (m.ordinal != Metric::kWholeLaunch) continue;
    if (const auto role = role_of(m.name)) all.push_back({m.name, m.unit, *role, m.base, m.head});
  }
  return all;
}

std::vector<PairedMetric> paired_metrics(const std::optional<Result>& base,
                                         const std::optional<Result>& head) {
  std::vector<PairedMetric> all;
  if (!base || !head) return all;
  const auto with_derived = [](const Result& result) {
    std::vector<Metric> metrics = derived_counters(result.metrics);
    metrics.insert(metrics.begin(), result.metrics.begin(), result.metrics.end());
    return metrics;
  };
  std::map<std::pair<std::string, int>, double> heads;
  for (const Metric& m : with_derived(*head)) heads[{m.name, m.ordinal}] = m.value;
  for (const Metric& m : with_derived(*base)) {
    const auto other = heads.find({m.name, m.ordinal});
    if (other == heads.end() || !std::isfinite(m.value) || !std::isfinite(other->second)) continue;
    all.push_back({m.name, m.unit, m.ordinal, m.value, other->second});
  }
  return all;
}

std::string change_text(double base, double head) {
  const double percent = 100 * (head / base - 1);
  constexpr double kWhole = 9.95;  // from ten on, a tenth says nothing
  return std::abs(percent) >= kWhole ? fmt::format("{:+.0f} %", percent)
                                     : fmt::format("{:+.1f} %", percent);
}

std::string both_text(double base, double head, const std::string& unit) {
  const ReadUnit read = read_unit(std::max(std::abs(base), std::abs(head)), unit);
  std::string before = number_text(base / read.factor), after = number_text(head / read.factor);
  if (before == after && base != head) {  // three digits do not tell them apart
    before = fmt::format("{:.6g}", base / read.factor);
    after = fmt::format("{:.6g}", head / read.factor);
  }
  return fmt::format("{} -> {}{}", before, after, read.name);
}

}  // namespace moegate
