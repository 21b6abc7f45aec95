// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/launch_watch.h"

#include <fmt/format.h>

#include <set>

namespace moegate {

void LaunchWatch::learn(const std::vector<Sample>& one, const std::vector<Sample>& other) {
  std::map<size_t, std::set<uint64_t>> seen;
  for (const auto* samples : {&one, &other}) {
    for (const Sample& s : *samples) seen[s.set].insert(s.outputs);
  }
  for (const auto& [set, hashes] : seen) {
    if (hashes.size() == 1) expected_[set] = *hashes.begin();
  }
}

void LaunchWatch::add(const std::vector<Sample>& timed) {
  for (const Sample& s : timed) {
    compared_ += expected_.contains(s.set);
    odd_ += is_odd(s);
  }
}

bool LaunchWatch::is_odd(const Sample& sample) const {
  const auto expected = expected_.find(sample.set);
  return expected != expected_.end() && sample.outputs != expected->second;
}

std::string LaunchWatch::fault() const {
  if (odd_ == 0) return {};
  return fmt::format(
      "in timed launches: {} of {} left other outputs than the launches that were verified", odd_,
      compared_);
}

}  // namespace moegate
