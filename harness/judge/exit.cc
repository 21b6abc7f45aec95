// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/exit.h"

#include <algorithm>
#include <array>

namespace moegate {
namespace {

constexpr std::array kGravestFirst = {
    Exit::interrupted,  Exit::store,       Exit::internal, Exit::usage,    Exit::environment,
    Exit::both,         Exit::accuracy,    Exit::latency,  Exit::coverage, Exit::waiver,
    Exit::inconclusive, Exit::no_baseline, Exit::ok};

}  // namespace

Exit gravest(std::initializer_list<Exit> due) {
  const auto is_due = [&](Exit e) { return std::find(due.begin(), due.end(), e) != due.end(); };
  const Exit worst = *std::find_if(kGravestFirst.begin(), kGravestFirst.end() - 1, is_due);
  return worst == Exit::accuracy && is_due(Exit::latency) ? Exit::both : worst;
}

bool can_be_judged(Exit run) {
  return run == Exit::ok || run == Exit::accuracy || run == Exit::coverage;
}

Exit night_exit(const NightExits& exits) {
  const Exit last = exits.gate.value_or(exits.run);
  return gravest({exits.verify, exits.controls, exits.canaries, last});
}

}  // namespace moegate
