// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/energy.h"

#include <algorithm>
#include <limits>

#include "harness/base/stats.h"

namespace moegate {
namespace {

double added_mj(const EnergyPair& pair) {
  return pair.launches.each_mj() - (pair.flushes ? pair.flushes->each_mj() : 0);
}

double added_s(const EnergyPair& pair) {
  return pair.launches.period_s() - (pair.flushes ? pair.flushes->period_s() : 0);
}

/// Mean of what `number` says of each pair.
template <class F>
double mean_over(std::span<const EnergyPair> pairs, const F& number) {
  std::vector<double> values;
  for (const EnergyPair& pair : pairs) values.push_back(number(pair));
  return mean(values);
}

double half_range(std::span<const EnergyPair> pairs) {
  const auto [low, high] = std::ranges::minmax_element(pairs, {}, added_mj);
  return (added_mj(*high) - added_mj(*low)) / 2;
}

}  // namespace

std::optional<Power> power_of(std::span<const EnergyReading> readings, double from_s) {
  const EnergyReading *first = nullptr, *last = nullptr;
  Power power;
  for (size_t i = 1; i < readings.size(); ++i) {
    const double step = readings[i].mj - readings[i - 1].mj;
    if (readings[i].at_s < from_s || step <= 0) continue;
    if (first) power.step_mj = std::max(power.step_mj, step);
    if (!first) first = &readings[i];
    last = &readings[i];
    ++power.steps;
  }
  constexpr int kFewest = 3;
  if (power.steps < kFewest) return std::nullopt;
  const double seconds = last->at_s - first->at_s;
  power.watts = 1e-3 * (last->mj - first->mj) / seconds;
  power.step_s = seconds / (power.steps - 1);
  return power;
}

std::vector<Metric> energy_metrics(std::span<const EnergyPair> pairs) {
  double launches = 0;
  for (const EnergyPair& pair : pairs) launches += pair.launches.times;
  const double each = mean_over(pairs, added_mj), seconds = mean_over(pairs, added_s);
  std::vector<Metric> metrics = {
      {"energy_per_launch", "mJ", each},
      {"energy_uncertainty", "mJ", half_range(pairs)},
      {"energy_resolution", "mJ",
       mean_over(pairs,
                 [](const EnergyPair& p) { return p.launches.power.step_mj / p.launches.times; })},
      {"energy_launches", "launches", launches},
      {"energy_update_interval", "ms",
       mean_over(pairs, [](const EnergyPair& p) { return 1e3 * p.launches.power.step_s; })},
      {"mean_power", "W",
       seconds > 0 ? 1e-3 * each / seconds : std::numeric_limits<double>::quiet_NaN()}};
  if (!pairs[0].flushes) return metrics;
  const auto add = [&](const char* name, const char* unit, const auto& number) {
    metrics.push_back({name, unit, mean_over(pairs, number)});
  };
  add("energy_with_flush", "mJ", [](const EnergyPair& p) { return p.launches.each_mj(); });
  add("energy_flush", "mJ", [](const EnergyPair& p) { return p.flushes->each_mj(); });
  add("power_with_flush", "W", [](const EnergyPair& p) { return p.launches.power.watts; });
  return metrics;
}

}  // namespace moegate
