// SPDX-License-Identifier: Apache-2.0
// Compares what timed launches wrote, launch by launch, by the hashes that the timer took of it: a
// launch in a thousand that does something else is seen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

class LaunchWatch {
 public:
  /// Launches on each problem behind outputs filled with one byte, and with another. Where all wrote
  /// the same, every later launch has to. Where not (sums in any order), only the comparisons with
  /// the truth tell.
  void learn(const std::vector<Sample>& one, const std::vector<Sample>& other);
  void add(const std::vector<Sample>& timed);
  /// Whether a launch wrote something else than those that were learnt.
  bool is_odd(const Sample& sample) const;
  /// How many launches were odd, as a reason; empty when none. Sums in any order may vary as seldom.
  std::string fault() const;
  /// Timed launches that could be compared.
  int compared() const { return compared_; }

 private:
  std::map<size_t, uint64_t> expected_;  // by problem
  int compared_ = 0, odd_ = 0;
};

}  // namespace moegate
