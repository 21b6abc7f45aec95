// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/comparison.h"

#include <cmath>

namespace moegate {

PairedQuestion pair_rounds(const Side& base, const Side& head, int first, int last) {
  PairedQuestion q;
  q.tick = head.tick;
  const Quantity quantity = compared(base, head);
  const auto& before = base.rounds(quantity);
  const auto& means = head.mean_rounds(quantity);
  const auto& means_before = base.mean_rounds(quantity);
  for (const auto& [round, level] : head.rounds(quantity)) {
    const auto other = before.find(round);
    if (round < first || round >= last || other == before.end()) continue;
    q.log_ratios.push_back(std::log(level / other->second));
    q.base_logs.push_back(std::log(other->second));
    q.head_logs.push_back(std::log(level));
    const auto mean = means.find(round), mean_before = means_before.find(round);
    if (mean == means.end() || mean_before == means_before.end()) continue;
    q.mean_log_ratios.push_back(std::log(mean->second / mean_before->second));
  }
  return q;
}

}  // namespace moegate
