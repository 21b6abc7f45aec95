// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/counter_roles.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace moegate {
namespace {

struct RolePattern {
  const char* name;  // '*' stands for any text; a stall's has its label there
  CounterRole role;
};

// Bytes of an H200 repeat to 0.01 %, percentages and stalls to 1 %: each threshold is several times
// that. A count has a floor, because small ones are the driver's as much as the kernel's: code,
// arguments and page tables are up to 64 KiB, which take the memory 15 ns. One launch counted twice
// differed by up to 700 sectors written (H200, 2026-11-22, 18 rows), by 19 KB read and by 25 KB of
// output that left L2 while it was counted (2026-11-23, 52 rows). Sectors are those that SMs ask
// for: what L2 counts in all is half as much again, traffic between its halves. Tensor cycles are a
// product of numbers of two launches, each to 1 %.
constexpr double kBytes = 0.01, kCount = 0.02, kPercent = 0.03, kStall = 0.02, kTime = 0.01,
                 kTensor = 0.05;
constexpr double kFewBytes = 65536, kFewWritten = 131072, kFewSectors = 4096,
                 kFewInstructions = 1000, kFewAtomics = 100, kFewCycles = 500;
constexpr double kHalfPoint = 0.5, kTenth = 0.1;

// A table: NOLINTNEXTLINE(readability-function-size)
const std::vector<RolePattern>& patterns() {
  using enum RoleKind;
  using enum RoleGroup;
  static const std::vector<RolePattern> all = {
      {"dram__bytes_read.sum", {"DRAM bytes read", work, kBytes, kFewBytes, dram, true}},
      {"dram__bytes_write.sum", {"DRAM bytes written", work, kBytes, kFewWritten, dram, true}},
      {"dram__bytes.sum", {"DRAM bytes", work, kBytes, kFewBytes}},
      {"lts__t_sectors_srcunit_tex_op_read.sum",
       {"L2 sectors read", work, kBytes, kFewSectors, l2, true}},
      {"lts__t_sectors_srcunit_tex_op_write.sum",
       {"L2 sectors written", work, kBytes, kFewSectors, l2, true}},
      {"l1tex__*bytes*tma.sum", {"bytes read by TMA", work, kBytes, kFewBytes, tma, true}},
      {"*op_tma*.sum", {"work by TMA", work, kBytes, kFewSectors, tma, true}},
      {"lts__t_*_op_atom*.sum", {"atomics", work, kCount, kFewAtomics, atomics, true}},
      {"lts__t_*_op_red.sum", {"reductions in L2", work, kCount, kFewAtomics, atomics, true}},
      {"sm*__*inst_executed_op_local*ld*.sum",
       {"loads from local memory", work, kCount, kFewInstructions, instructions}},
      {"sm*__*inst_executed_op_local*st*.sum",
       {"stores to local memory", work, kCount, kFewInstructions, instructions}},
      {"sm*__inst_executed_pipe_tensor*.sum",
       {"tensor instructions", work, kCount, kFewInstructions, tensor, true}},
      {"tensor cycles", {"tensor cycles", work, kTensor, kFewCycles}},
      {"sm*__inst_executed.sum",
       {"instructions", work, kCount, kFewInstructions, instructions, true}},
      {"*bank_conflicts*.sum", {"bank conflicts", conflict, kPercent, kFewInstructions}},
      {"sm__pipe_tensor*_active.*pct*", {"tensor pipe", pipe, kPercent, kHalfPoint}},
      {"sm__inst_executed_pipe_tensor*pct*", {"tensor pipe", pipe, kPercent, kHalfPoint}},
      {"DRAM throughput", {"DRAM throughput", pipe, kPercent, kHalfPoint}},
      {"L2 throughput", {"L2 throughput", pipe, kPercent, kHalfPoint}},
      {"l1tex__data_pipe_lsu_wavefronts.*pct*", {"L1 data pipe", pipe, kPercent, kHalfPoint}},
      {"dram__throughput.*pct*", {"DRAM throughput", pipe, kPercent, kHalfPoint}},
      {"lts__throughput.*pct*", {"L2 throughput", pipe, kPercent, kHalfPoint}},
      {"l1tex__throughput.*pct*", {"L1 throughput", pipe, kPercent, kHalfPoint}},
      {"sm*__inst_issued.*pct*", {"issue slots", pipe, kPercent, kHalfPoint}},
      {"sm*__issue_active.*pct*", {"issue slots", pipe, kPercent, kHalfPoint}},
      {"sm__throughput.*pct*", {"SM throughput", overall, kPercent, kHalfPoint}},
      {"sm__warps_active.*pct*", {"active warps", warps, kPercent, kHalfPoint}},
      {"stalled on *", {"", stall, kStall, kTenth}},
      {"smsp__average_warps_issue_stalled_*_per_issue_active.ratio", {"", stall, kStall, kTenth}},
      {"smsp__average_warp_latency_issue_stalled_*.ratio", {"", stall, kStall, kTenth}},
      {"sm__cycles_active.max", {"cycles", cycles, kTime, 0}},
      {"sm__cycles_active.avg", {"active cycles", active, kTime, 0}},
  };
  return all;
}

/// Whether `name` is what `pattern` says; `star`: what its first '*' stands for.
bool fits(std::string_view pattern, std::string_view name, std::string_view& star) {
  const size_t at = pattern.find('*');
  if (at == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, at))) return false;
  const std::string_view rest = pattern.substr(at + 1);
  for (size_t length = 0; at + length <= name.size(); ++length) {
    std::string_view inner;
    if (!fits(rest, name.substr(at + length), inner)) continue;
    star = name.substr(at, length);
    return true;
  }
  return false;
}

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

/// Half of the products of a launch (bf16 by mma.sync) have no counter of their own; the time of
/// the pipe that does them all has one, as a share.
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

std::optional<CounterRole> role_of(const std::string& counter) {
  for (const RolePattern& pattern : patterns()) {
    std::string_view star;
    if (!fits(pattern.name, counter, star)) continue;
    CounterRole role = pattern.role;
    if (role.label.empty()) {
      role.label = star;
      std::ranges::replace(role.label, '_', ' ');
    }
    return role;
  }
  return std::nullopt;
}

std::vector<Metric> derived_counters(const std::vector<Metric>& counters) {
  std::vector<Metric> derived;
  add_throughputs(counters, derived);
  add_tensor_cycles(counters, derived);
  add_stalls_per_instruction(counters, derived);
  return derived;
}

}  // namespace moegate
