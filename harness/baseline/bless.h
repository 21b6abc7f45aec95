// SPDX-License-Identifier: Apache-2.0
// Makes a run the baseline of its device class: the only way a baseline moves, always with a reason
// and a line in the ledger.
#pragma once

#include <filesystem>
#include <string>

#include "harness/judge/evidence.h"

namespace moegate {

struct BlessOptions {
  std::string reason;
  std::filesystem::path baselines;  // the folder that holds <class>/<suite>.tsv and blessings.tsv
  std::string author;
  bool allow_dirty = false;
  bool accept_creep = false;  // rows may leave their anchors further than CreepLimits, or lose them
  bool new_conditions = false;  // replace a baseline of another timer, protocol or flush
};

/// Writes the baseline file of every suite of the run and the ledger; returns what changed, for
/// people. Throws Error(usage), and changes nothing, for an empty reason, a dirty or partial run, a
/// result that is no example to follow (wrong, crashed, timeout, bad_timer), a measured row that is
/// too noisy for a baseline, other conditions than the present baseline's, and creep beyond the
/// limits, naming them.
std::string bless(const RunInfo& run, const Sides& sides, const BlessOptions& options);

}  // namespace moegate
