// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

double busy_share(const EnergyBatch& batch) {
  return batch.busy_s / batch.period_s();
}

/// The batch of all pairs in which the GPU waited most for work.
const EnergyBatch& idlest(std::span<const EnergyPair> pairs) {
  const EnergyBatch* worst = &pairs[0].launches;
  for (const EnergyPair& pair : pairs) {
    if (busy_share(pair.launches) < busy_share(*worst)) worst = &pair.launches;
    if (pair.flushes && busy_share(*pair.flushes) < busy_share(*worst)) worst = &*pair.flushes;
  }
  return *worst;
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

std::string energy_fault(std::span<const EnergyPair> pairs, std::optional<double> limit_watts) {
  constexpr double kMostLonger = 1.2, kOverLimit = 1.05;  // a limit is held over some time only
  const EnergyBatch& slowest = idlest(pairs);
  if (slowest.period_s() > kMostLonger * slowest.busy_s) {
    return fmt::format(
        "the GPU was idle while its energy was counted: a launch took {:.1f} us, and {:.1f} us "
        "back to back; leave the machine alone, or choose a larger case",
        1e6 * slowest.period_s(), 1e6 * slowest.busy_s);
  }
  if (!limit_watts) return {};
  const auto too_much = [&](const char* of, double watts) {
    return watts <= kOverLimit * *limit_watts
               ? std::string()
               : fmt::format(
                     "{} at {:.0f} W is more than the board's limit of {:.0f} W: its energy "
                     "counter cannot be believed",
                     of, watts, *limit_watts);
  };
  for (const EnergyPair& pair : pairs) {
    const double watts =
        std::max(pair.launches.power.watts, pair.flushes ? pair.flushes->power.watts : 0);
    if (std::string fault = too_much("the GPU", watts); !fault.empty()) return fault;
  }
  const double seconds = mean_over(pairs, added_s);
  if (seconds <= 0) return {};
  return too_much("a launch", 1e-3 * (mean_over(pairs, added_mj) - half_range(pairs)) / seconds);
}

std::string proportion_fault(const EnergyBatch& once, const EnergyBatch& twice) {
  constexpr double kAllowed = 0.05;
  const double ratio = twice.each_mj() / once.each_mj();
  if (std::abs(ratio / 2 - 1) <= kAllowed) return {};
  return fmt::format(
      "twice the same work took {:.2f} times its energy ({:.2f} mJ, {:.2f} mJ): the GPU's counter "
      "or its reading cannot be believed",
      ratio, twice.each_mj(), once.each_mj());
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
      {"energy_busy", "share", busy_share(idlest(pairs))},
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
