// SPDX-License-Identifier: Apache-2.0
#include "harness/values/result.h"

#include <fmt/format.h>

#include <algorithm>

namespace moegate {

bool is_worse(Status a, Status b) {
  return std::ranges::find(kWorstFirst, a) < std::ranges::find(kWorstFirst, b);
}

bool is_failure(Status s) {
  return is_worse(s, Status::unsupported);
}

std::string impossible_number(const Result& r) {
  if (!r.measured() || r.timer.empty()) return "";
  constexpr double kLongest = 1e15;  // ns: a week and more
  const auto numbers =
      std::to_array<std::pair<const char*, double>>({{"span_ns", r.span_ns},
                                                     {"median_ns", r.median_ns},
                                                     {"low_ns", r.low_ns},
                                                     {"high_ns", r.high_ns},
                                                     {"min_ns", r.min_ns},
                                                     {"ratio", r.ratio},
                                                     {"ratio_low", r.ratio_low},
                                                     {"ratio_high", r.ratio_high}});
  for (const auto& [name, value] : numbers) {
    if (!(value >= 0 && value <= kLongest)) return fmt::format("{} is {:g}", name, value);
  }
  if (r.span_ns == 0) return "span_ns is 0";
  if (r.low_ns > r.high_ns) return "low_ns is above high_ns";
  if (r.ratio_low > r.ratio_high) return "ratio_low is above ratio_high";
  if (r.samples <= 0) return fmt::format("it has {} samples", r.samples);
  return "";
}

std::string describe_flags(uint32_t flags) {
  constexpr std::array<const char*, 7> kReasons = {"zero or reversed timestamp",
                                                   "missing or dropped records",
                                                   "a different set of kernels",
                                                   "overlap with the flush",
                                                   "slow clock",
                                                   "preempted thread",
                                                   "other work of the process on the GPU"};
  std::string text;
  for (size_t i = 0; i < kReasons.size(); ++i) {
    if ((flags >> i & 1u) != 0) text += (text.empty() ? "" : ", ") + std::string(kReasons[i]);
  }
  return text.empty() ? "no sample came back" : text;
}

}  // namespace moegate
