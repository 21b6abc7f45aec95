// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic over activity records. Everything here is deterministic in its arguments.
#include "harness/timing/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "harness/base/dynlib.h"
#include "harness/base/stats.h"
#include "harness/kernel/kernel.h"

namespace moegate {
namespace {

constexpr double kSlowShare = 0.95;   // protocol 1
constexpr size_t kClockWindow = 256;  // more than one batch, less than a case
constexpr double kRoundingNs = 4;     // conversion of GPU to CPU time rounds to 1 ns at both ends

bool bad(const Activity& a, const TimeWindow& window) {
  return a.start_ns == 0 || a.end_ns < a.start_ns || a.start_ns < window.low_ns ||
         a.end_ns > window.high_ns;
}

double between(uint64_t from, uint64_t to) {  // signed, unlike the difference itself
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

uint64_t hash_geometry(const OperationShape& s, uint64_t detail, uint64_t seed) {
  for (const auto& extent : {s.grid, s.block, s.cluster}) {
    seed = hash_bytes(extent, sizeof s.grid, seed);
  }
  seed = hash_bytes(&s.registers, sizeof s.registers, seed);
  const int64_t shared[] = {s.static_shared, s.dynamic_shared};
  seed = hash_bytes(shared, sizeof shared, seed);
  return hash_bytes(&detail, sizeof detail, seed);
}

std::string extent_text(const int (&extent)[3]) {
  if (extent[0] == 0) return "";
  return fmt::format("{}x{}x{}", extent[0], extent[1], extent[2]);
}

}  // namespace

int ShapeTable::id_of(const OperationShape& shape) {
  const auto [it, fresh] = ids_.try_emplace(shape, static_cast<int>(shapes_.size()));
  if (fresh) shapes_.push_back(&it->first);
  return it->second;
}

uint64_t detail_of(std::initializer_list<uint64_t> values) {
  return hash_bytes(values.begin(), values.size() * sizeof(uint64_t));
}

Sample summarise(Recorded& recorded, const TimeWindow& window) {
  Sample sample;
  std::vector<Activity>& launch = recorded.launch;
  sample.kernels = static_cast<int>(launch.size());
  if (launch.empty()) {
    sample.flags = kMissingRecord;
    return sample;
  }
  std::ranges::sort(launch, {}, [](const Activity& a) { return std::pair(a.start_ns, a.end_ns); });
  if (std::ranges::any_of(launch, [&](const Activity& a) { return bad(a, window); })) {
    sample.flags = kBadTimestamp;  // durations of such records mean nothing: leave them at 0
    return sample;
  }
  const uint64_t first = launch.front().start_ns;
  uint64_t reached = first;  // end of everything so far
  for (const Activity& a : launch) {
    sample.sum_ns += between(a.start_ns, a.end_ns);
    const uint64_t fresh = std::max(a.start_ns, reached);
    if (a.end_ns > fresh) sample.busy_ns += between(fresh, a.end_ns);
    reached = std::max(reached, a.end_ns);
  }
  sample.span_ns = between(first, reached);
  for (const Activity& f : recorded.flush) {
    if (bad(f, window)) sample.flags |= kBadTimestamp;
    if (f.end_ns > first) sample.flags |= kOverlapsFlush;
  }
  return sample;
}

std::vector<int> fingerprint(std::span<const Activity> launch) {
  std::vector<int> ids;
  ids.reserve(launch.size());
  for (const Activity& a : launch) ids.push_back(a.shape);
  std::ranges::sort(ids);
  return ids;
}

void KernelSets::flag(std::span<Sample> samples, std::span<const Recorded> recorded) {
  using Print = std::pair<size_t, std::vector<int>>;  // problem set, shapes
  std::vector<Print> prints;
  prints.reserve(samples.size());
  std::map<Print, int> seen;  // of sets that have no reference yet
  std::map<size_t, int> most;
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t set = samples[i].set;
    prints.emplace_back(set, fingerprint(recorded[i].launch));
    if (samples[i].flags != 0 || reference_.contains(set)) continue;
    most[set] = std::max(most[set], ++seen[prints[i]]);
  }
  for (size_t i = 0; i < samples.size(); ++i) {  // in order: the earliest wins a tie
    const auto found = seen.find(prints[i]);
    if (found == seen.end() || samples[i].flags != 0) continue;
    const auto& [set, shapes] = prints[i];
    if (found->second == most[set]) reference_.try_emplace(set, shapes.size());
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto found = reference_.find(samples[i].set);
    const bool fewer = found != reference_.end() && prints[i].second.size() < found->second;
    if (fewer) samples[i].flags |= kMissingRecord;
  }
}

void flag_foreign_work(std::span<Sample> samples, std::span<const Recorded> recorded,
                       std::span<const Activity> foreign) {
  for (size_t i = 0; i < samples.size() && !foreign.empty(); ++i) {
    uint64_t from = UINT64_MAX, to = 0;
    for (const auto* operations : {&recorded[i].flush, &recorded[i].launch}) {
      for (const Activity& a : *operations) {
        from = std::min(from, a.start_ns);
        to = std::max(to, a.end_ns);
      }
    }
    const bool disturbed = std::ranges::any_of(
        foreign, [&](const Activity& a) { return a.start_ns < to && a.end_ns > from; });
    if (disturbed) samples[i].flags |= kForeignWork;
  }
}

void ClockWatch::flag(std::span<Sample> samples) {
  for (const Sample& s : samples) {
    if (s.sm_mhz > 0) recent_.push_back(s.sm_mhz);
  }
  while (recent_.size() > std::max(kClockWindow, samples.size())) recent_.pop_front();
  if (recent_.empty()) return;
  const std::vector<double> values(recent_.begin(), recent_.end());
  const double limit = kSlowShare * median(values);
  for (Sample& s : samples) {
    if (s.sm_mhz > 0 && s.sm_mhz < limit) s.flags |= kSlowClock;
  }
}

void OperationLog::add(std::span<const Activity> launch) {
  std::map<int, int> before;
  uint64_t reached = 0;
  for (const Activity& a : launch) {
    Series& series = series_[{a.shape, before[a.shape]++}];
    series.ns.push_back(between(a.start_ns, a.end_ns));
    series.gap_ns.push_back(reached == 0 ? 0 : between(reached, a.start_ns));
    series.offset_ns += between(launch.front().start_ns, a.start_ns);
    reached = std::max(reached, a.end_ns);
  }
}

std::vector<KernelRow> OperationLog::rows(const ShapeTable& shapes) const {
  std::vector<std::pair<double, KernelRow>> ordered;
  for (const auto& [key, series] : series_) {
    const OperationShape& shape = shapes.at(key.first);
    KernelRow row;
    row.name = demangle(shape.name);
    row.grid = extent_text(shape.grid);
    row.block = extent_text(shape.block);
    row.cluster = extent_text(shape.cluster);
    row.registers = shape.registers;
    row.static_shared = shape.static_shared;
    row.dynamic_shared = shape.dynamic_shared;
    row.local_bytes = shape.local_bytes;
    row.ns = trimmed_mean(series.ns);
    row.gap_ns = trimmed_mean(series.gap_ns);
    ordered.emplace_back(series.offset_ns / static_cast<double>(series.ns.size()), std::move(row));
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  std::vector<KernelRow> rows;
  rows.reserve(ordered.size());
  for (auto& [offset, row] : ordered) rows.push_back(std::move(row));
  return rows;
}

void LaunchLog::add(size_t set, std::span<const Activity> launch) {
  const auto [it, fresh] = launches_.try_emplace(set);
  if (!fresh) return;
  it->second.assign(launch.begin(), launch.end());
  // Operations on several streams start in any order; they are launched in one.
  std::ranges::sort(it->second, {},
                    [](const Activity& a) { return std::pair(a.correlation, a.start_ns); });
}

std::string LaunchLog::code(size_t sets, const ShapeTable& shapes, const CodeOf& code_of) const {
  uint64_t hash = 0;
  for (size_t set = 0; set < sets; ++set) {
    const auto launch = launches_.find(set);
    if (launch == launches_.end()) return "";
    const size_t count = launch->second.size();
    hash = hash_bytes(&count, sizeof count, hash);
    for (const Activity& a : launch->second) {
      const OperationShape& shape = shapes.at(a.shape);
      const bool is_kernel = shape.grid[0] > 0;
      const auto code =
          is_kernel ? code_of(shape.name) : hash_bytes(shape.name.data(), shape.name.size());
      if (!code) return "";
      hash = hash_geometry(shape, a.detail, hash_bytes(&*code, sizeof *code, hash));
    }
  }
  return sets > 0 ? fmt::format("{:016x}", hash) : "";
}

size_t LaunchLog::most_operations() const {
  size_t most = 0;
  for (const auto& [set, launch] : launches_) most = std::max(most, launch.size());
  return most;
}

double measured_tick(std::span<const double> durations_ns) {
  std::vector<double> values(durations_ns.begin(), durations_ns.end());
  std::ranges::sort(values);
  std::vector<double> steps;  // means of values that only rounding tells apart
  for (size_t i = 0; i < values.size();) {
    const size_t begin = i;
    double sum = 0;
    for (; i < values.size() && values[i] - values[begin] < kRoundingNs; ++i) sum += values[i];
    steps.push_back(sum / static_cast<double>(i - begin));
  }
  if (steps.size() < 2) return 0;
  std::adjacent_difference(steps.begin(), steps.end(), steps.begin());
  return *std::min_element(steps.begin() + 1, steps.end());
}

}  // namespace moegate
