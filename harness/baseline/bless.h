// SPDX-License-Identifier: Apache-2.0
// This file makes a run the baseline of its device class, and what a program's kernels take the
// resources that are blessed: nothing else moves either, always with a reason and a line in the
// ledger.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/baseline/baseline.h"
#include "harness/baseline/resource_ratchet.h"
#include "harness/judge/evidence.h"

namespace moegate {

struct BlessOptions {
  std::string reason;
  std::filesystem::path baselines;  // the folder that holds <class>/<suite>.tsv and blessings.tsv
  std::string author;
  bool allow_dirty = false;
  bool accept_creep = false;  // rows may leave their anchors further than CreepLimits, or lose them
  EnvironmentItems environment;  // that the run was measured in
  bool new_conditions = false;   // replace a baseline of another timer, protocol or flush
};

/// Writes the baseline file of every suite of the run and the ledger; returns what changed, for
/// people. Throws Error(usage), and changes nothing, for an empty reason, a dirty or partial run, a
/// result that is no example (wrong, crashed, timeout, bad_timer), a row that is too noisy for a
/// baseline, other conditions than the present baseline's, and creep beyond the limits.
std::string bless(const RunInfo& run, const Sides& sides, const BlessOptions& options);
/// Why bless() refuses this run whatever is accepted; empty where it may take it.
std::string why_unfit(const RunInfo& run, const Sides& sides);

// Makes what a program's kernels take the file of their device class: like a baseline, with a
// reason and a line in the ledger.

/// What stands where a suite's name does: in the ledger, and in the file's name.
constexpr const char* kResources = "resources";

/// The file of a class, as blessed. Throws Error(usage) for one that the ledger beside it does not
/// state; Error(no_baseline) where there is none.
ResourceFile blessed_resources(const std::filesystem::path& baselines, const std::string& klass);

/// Writes CLASS/resources.tsv and the ledger; returns what changed, for people. `blessing` says
/// who, why, with launches of which runs, and of which program; the rest of the line is made here.
/// Throws Error(usage), and changes nothing, for an empty reason and a file that the ledger does
/// not state.
std::string bless_resources(const ResourceFile& now, const std::vector<ResourceChange>& changes,
                            const std::filesystem::path& baselines, Blessing blessing);

}  // namespace moegate
