// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/derived_counters.h"

#include <cmath>
#include <string>
#include <string_view>

namespace moegate {
namespace {

constexpr double kHundred = 100;

/// Of the whole launch; 0 where it was not counted.
double value_of(const std::vector<Metric>& counters, std::string_view name) {
  for (const Metric& m : counters) {
    const bool whole = m.ordinal == Metric::kWholeLaunch && std::isfinite(m.value);
    if (whole && m.name == name) return m.value;
  }
  return 0;
}

void add_throughputs(const std::vector<Metric>& counters, std::vector<Metric>& derived) {
  const auto value = [&](std::string_view name) { return value_of(counters, name); };
  const double cycles = value("sm__cycles_active.max");
  const double hz = value("sm__cycles_elapsed.avg.per_second");
  if (cycles <= 0 || hz <= 0) return;
  const auto add = [&](const char* name, double moved, double peak) {
    if (moved <= 0 || peak <= 0) return;
    derived.push_back({name, "%", kHundred * moved / (cycles / hz) / peak});
  };
  add("DRAM throughput", value("dram__bytes_read.sum") + value("dram__bytes_write.sum"),
      value("dram__bytes.sum.peak_sustained_elapsed.per_second"));
  add("L2 throughput", value("lts__t_sectors.sum"),
      value("lts__t_sectors.sum.peak_sustained") * value("lts__cycles_elapsed.avg.per_second"));
}

/// Half of the products of a launch (bf16 by mma.sync) have no counter of their own; the time of the pipe
/// that does them all has one, as a share.
void add_tensor_cycles(const std::vector<Metric>& counters, std::vector<Metric>& derived) {
  const double share =
      value_of(counters, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active");
  const double active = value_of(counters, "sm__cycles_active.avg");
  if (share <= 0 || active <= 0) return;
  derived.push_back({"tensor cycles", "cycle", share / kHundred * active});
}

void add_stalls_per_instruction(const std::vector<Metric>& counters, std::vector<Metric>& derived) {
  constexpr std::string_view kPrefix = "smsp__warps_issue_stalled_", kSuffix = ".sum";
  const double instructions = value_of(counters, "sm__inst_executed.sum");
  if (instructions <= 0) return;
  for (const Metric& m : counters) {
    const std::string_view name = m.name;
    if (m.ordinal != Metric::kWholeLaunch || !name.starts_with(kPrefix)) continue;
    if (!name.ends_with(kSuffix)) continue;
    const auto reason = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    if (reason == "selected") continue;
    derived.push_back(
        {"stalled on " + std::string(reason), "cycles/instruction", m.value / instructions});
  }
}

}  // namespace

std::vector<Metric> derived_counters(const std::vector<Metric>& counters) {
  std::vector<Metric> derived;
  add_throughputs(counters, derived);
  add_tensor_cycles(counters, derived);
  add_stalls_per_instruction(counters, derived);
  return derived;
}

}  // namespace moegate
