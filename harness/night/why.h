// SPDX-License-Identifier: Apache-2.0
// Why a judged row became slower or faster: has the programs of both sides count what the GPU did
// in it, and gives the row its cause. It changes no outcome, and what it cannot do is a note of
// the verdict.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/judge/gate.h"
#include "harness/night/ab.h"

namespace moegate {

enum class WhyMode {
  automatic,  // on a GPU, of rows that fail or improve
  off,
  all  // of every row that both sides measured
};
/// "auto", "off" or "all". Throws Error(usage) naming them.
WhyMode parse_why(const std::string& name);

/// One side of a comparison, and all that it takes to start its program again.
struct WhySide {
  RunOptions options;
  Plan plan;
  int64_t run = 0;      // that measured it
  std::string variant;  // of a pair of variants
};

/// Rows are named as in the verdict: of a pair of variants "first → second".
struct Compared {
  WhySide base, head;
  std::set<RowName> rows;  // that both sides measured
};

/// What is to be kept of a comparison before it is measured, and after.
Compared keep_for_why(const PreparedAb& prepared);
void complete_for_why(Compared& compared, const Comparison& comparison);

/// Most rows that WhyMode::automatic asks about: the worst ones.
constexpr size_t kMostCauses = 10;
/// Seconds that WhyMode::automatic takes at most, of what `deadline` leaves.
constexpr double kWhySeconds = 120;

/// Sets CaseVerdict::cause of the rows that were compared and that `mode` asks about. On a GPU the
/// rows are counted by one process of the base and then one of the head, the worst first, as many
/// as there is time for; these runs are stored (kWhyTag). Where nothing can be counted a note says
/// why, and causes come from times. A note tells of rows that nothing compared. Throws
/// Error(store).
void add_causes(Store& store, const std::vector<Compared>& compared, WhyMode mode, Backend backend,
                const Deadline& deadline, GateResult& result, WorkerSource& source);

}  // namespace moegate
