// SPDX-License-Identifier: Apache-2.0
// What `run` and `repro --run` end with: what was measured, and where to look further.
#pragma once

#include <string>

#include "harness/campaign/recording.h"

namespace moegate {

/// Prints the rows of the report `summary`, forty at most with those first that are not ok, then one
/// line of counts. Where the table cannot be made, standard error says why: the run is stored.
void print_run(const std::string& db, const Tally& tally);

}  // namespace moegate
