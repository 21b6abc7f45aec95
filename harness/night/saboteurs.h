// SPDX-License-Identifier: Apache-2.0
// Variants that cheat or break on purpose, each in a process of its own: a harness that measures
// one of them, or calls it something else than its author says, cannot be trusted.
#pragma once

#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/campaign/plan.h"

namespace moegate {

/// What became of one variant on one case.
struct TriedSaboteur {
  std::string key, variant, help;
  ExpectedResult expected;
  Result result;

  /// A saboteur that was called what it is; an honest variant that was measured.
  bool as_expected() const;
};

/// Runs every variant that states what is to be made of it, and the honest ones of the same
/// operators; leaves out what does not support its case. Throws Error(usage) where this program has
/// no saboteur, Error(interrupted).
std::vector<TriedSaboteur> release_saboteurs(const RunOptions& options, WorkerSource& source);

/// A line for each: the variant, what it does, what it was called and why, with the exit code of a
/// run in which that happens.
Table saboteur_table(const std::vector<TriedSaboteur>& all);

}  // namespace moegate
