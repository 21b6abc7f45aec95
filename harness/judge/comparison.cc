// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/comparison.h"

#include <cmath>

namespace moegate {

PairedQuestion pair_rounds(const Side& base, const Side& head, int first, int last) {
  PairedQuestion q;
  q.tick = head.tick;
  for (const auto& [round, level] : head.by_round) {
    const auto other = base.by_round.find(round);
    if (round < first || round >= last || other == base.by_round.end()) continue;
    q.log_ratios.push_back(std::log(level / other->second));
  }
  return q;
}

}  // namespace moegate
