// SPDX-License-Identifier: Apache-2.0
// How long a run is going to take, said before its first case.
#pragma once

#include <cstddef>
#include <string>

namespace moegate {

struct TimePlan {
  size_t rows = 0;
  int rounds = 0;
  size_t results = 0;       // still to be measured; without --resume rows x rounds
  double seconds_each = 0;  // that earlier runs on this device took; 0: there are none
  double budget_s = 0;      // Sampling::budget_s
  double case_timeout_s = 0;
  size_t devices = 1;  // that work at the same time
};

/// One line: the number of results, the likely time, where it comes from, and when a row that hangs
/// is given up.
std::string time_text(const TimePlan& plan);

}  // namespace moegate
