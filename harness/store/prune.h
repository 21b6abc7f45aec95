// SPDX-License-Identifier: Apache-2.0
// Old runs without what fills most of a store. No command reads the samples of a run that it did not
// just measure; they are there for people who ask why a row was judged as it was.
#pragma once

#include <cstdint>

#include "harness/store/store.h"

namespace moegate {

struct Pruned {
  int64_t runs = 0;    // whose samples went
  int64_t bytes = 0;   // of those samples
  int64_t failed = 0;  // runs as old that keep theirs, because a gate failed one of their rows
};

/// Deletes the samples of complete and interrupted runs that started `days` days ago or earlier, in
/// one transaction. Levels, outputs, kernels, metrics and verdicts stay, and so do the samples of
/// runs with a row that regressed, was wrong, went missing or was waived. Throws Error(store).
Pruned prune_samples(Store& store, int days);

/// Of a store's file, in bytes.
struct Sizes {
  int64_t before = 0, after = 0;
};

/// Gives the file's free pages back to the disk; needs as much free space as the store then has.
/// Throws Error(store) while another process holds the store.
Sizes compact(Store& store);

}  // namespace moegate
