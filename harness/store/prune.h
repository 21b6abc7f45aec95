// SPDX-License-Identifier: Apache-2.0
// Old runs without what fills most of a store. No command reads the samples of a run that it did
// not just measure; they are there for people who ask why a row was judged as it was.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/store/store.h"

namespace moegate {

/// Tag of a run that a baseline was made of.
inline constexpr const char* kBlessedTag = "blessed";

/// Days since a run started, after which it loses what it has.
struct PruneAges {
  int samples = 30;
  std::optional<int> launches = std::nullopt;  // and metrics and stalls; not given: never
};

struct Pruned {
  int64_t runs = 0;   // which lost something
  int64_t bytes = 0;  // that the store has free now
  int64_t whole = 0;  // runs as old that keep all, because a gate failed a row or they were blessed
};

/// Thins complete and interrupted runs, in one transaction. Levels, what was verified and verdicts
/// stay, and so does everything of blessed runs and of runs with a row that regressed, was wrong,
/// went missing or was waived. Throws Error(store).
Pruned prune(Store& store, const PruneAges& ages);

/// Remembers that a baseline was made of a run, and the day.
void mark_blessed(Store& store, int64_t run);

/// Of a store's file, in bytes.
struct Sizes {
  int64_t before = 0, after = 0;
};

/// Gives the file's free pages back to the disk; needs as much free space as the store then has.
/// Throws Error(store) while another process holds the store.
Sizes compact(Store& store);

}  // namespace moegate
