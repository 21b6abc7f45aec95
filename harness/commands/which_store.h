// SPDX-License-Identifier: Apache-2.0
// The store that is meant where no --db names one.
#pragma once

#include <string>

namespace moegate {

inline constexpr const char* kDefaultStore = "results.sqlite";

struct WhichStore {
  std::string path;
  std::string why;  // it is not kDefaultStore; empty where it is
};

/// For what reads a store: MOEGATE_DB, else results.sqlite of this folder, else out/results.sqlite,
/// where `ci/nightly` and `ci/ab` keep theirs.
WhichStore nearest_store();
/// For what makes a store: MOEGATE_DB, else results.sqlite, so that a night's store gets no runs of
/// anybody else.
WhichStore new_store();

/// Its path; says on standard error which it is and why, unless it is kDefaultStore.
std::string announced(const WhichStore& store);

}  // namespace moegate
