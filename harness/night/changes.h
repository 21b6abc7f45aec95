// SPDX-License-Identifier: Apache-2.0
// What a head removed, renamed, loosened or edited beside its kernels, so that it is judged less,
// or otherwise, than its base would be. Read from the two programs and from the folders that hold
// their suites and records.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/campaign/plan.h"
#include "harness/judge/evidence.h"

namespace moegate {

struct Changes {
  /// A sentence each, the gravest kind first; for GateResult::changed.
  std::vector<std::string> told;
  /// Rows that the base would measure by its own suites and the head would not.
  std::vector<CaseId> lacking;
};

/// One side: what its program says of itself, and its home; an empty home has no files to compare.
struct ChangedSide {
  const Hello& hello;
  std::filesystem::path home;
  /// The suites of the options as files of this side's; none of the base's: those of its home.
  std::vector<std::string> suites = {};
};

/// Compares variants, yardsticks, the suites of `options`, baselines, the ledger, waivers and, in a
/// source tree, the rules of judging. `planned`: the rows that are to be measured anyway.
Changes changes_between(const ChangedSide& base, const ChangedSide& head, const RunOptions& options,
                        const std::vector<RowName>& planned);

}  // namespace moegate
