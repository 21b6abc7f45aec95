// SPDX-License-Identifier: Apache-2.0
// The spelling of a Status in the store, on the wire and in reports.
#include "harness/values/result.h"

#include <array>
#include <stdexcept>

namespace moegate {
namespace {

constexpr std::array<const char*, 7> kNames = {"ok",      "unsupported", "wrong", "crashed",
                                               "timeout", "bad_timer",   "noisy"};

}  // namespace

const char* name_of(Status s) {
  return kNames.at(static_cast<size_t>(s));
}

Status parse_status(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Status>(i);
  }
  throw std::invalid_argument("'" + name + "' is no status of a result");
}

std::string describe_flags(uint32_t flags) {
  constexpr std::array<const char*, 6> kReasons = {"zero or reversed timestamp",
                                                   "missing or dropped records",
                                                   "a different set of kernels",
                                                   "overlap with the flush",
                                                   "slow clock",
                                                   "preempted thread"};
  std::string text;
  for (size_t i = 0; i < kReasons.size(); ++i) {
    if ((flags >> i & 1u) != 0) text += (text.empty() ? "" : ", ") + std::string(kReasons[i]);
  }
  return text.empty() ? "no sample came back" : text;
}

}  // namespace moegate
