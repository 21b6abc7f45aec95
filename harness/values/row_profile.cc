// SPDX-License-Identifier: Apache-2.0
#include "harness/values/row_profile.h"

#include <algorithm>

#include "harness/base/stats.h"

namespace moegate {

namespace {

std::vector<const Result*> timed_ones(std::span<const Result> processes) {
  std::vector<const Result*> timed;
  for (const Result& r : processes) {
    if (r.measured() && r.span_ns > 0) timed.push_back(&r);
  }
  return timed;
}

}  // namespace

std::optional<size_t> middle_process(std::span<const Result> processes) {
  std::vector<const Result*> timed = timed_ones(processes);
  if (timed.empty()) return std::nullopt;
  std::ranges::stable_sort(timed, {}, [](const Result* r) { return r->span_ns; });
  return timed[(timed.size() - 1) / 2] - processes.data();
}

std::optional<Result> typical(std::span<const Result> processes) {
  const auto at = middle_process(processes);
  if (!at) return std::nullopt;
  Result result = processes[*at];
  std::vector<const Result*> timed = timed_ones(processes);
  std::erase_if(timed, [&](const Result* r) { return r->kernels.size() != result.kernels.size(); });
  const auto middle = [&](const auto& number) {
    std::vector<double> values;
    for (const Result* r : timed) values.push_back(number(*r));
    return median(values);
  };
  for (double Result::*member : {&Result::span_ns, &Result::busy_ns, &Result::sum_ns,
                                 &Result::mean_ns, &Result::ratio, &Result::sm_mhz}) {
    result.*member = middle([&](const Result& r) { return r.*member; });
  }
  for (size_t i = 0; i < result.kernels.size(); ++i) {
    result.kernels[i].ns = middle([&](const Result& r) { return r.kernels[i].ns; });
    result.kernels[i].gap_ns = middle([&](const Result& r) { return r.kernels[i].gap_ns; });
  }
  return result;
}

RowProfile with_local_memory(RowProfile profile) {
  if (!profile.measured || !profile.counted) return profile;
  std::vector<KernelRow>& timed = profile.measured->kernels;
  const std::vector<KernelRow>& counted = profile.counted->kernels;
  if (!std::ranges::equal(timed, counted, {}, &KernelRow::name, &KernelRow::name)) return profile;
  for (size_t i = 0; i < timed.size(); ++i) {
    if (timed[i].local_bytes < 0) timed[i].local_bytes = counted[i].local_bytes;
  }
  return profile;
}

}  // namespace moegate
