// SPDX-License-Identifier: Apache-2.0
// Stores of several machines, or of several nights, put into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace moegate {

struct MergeOptions {
  /// Runs that have not ended are left out; else they are refused.
  bool leave_unfinished = false;
};

struct Merged {
  int added = 0;                   // runs that the store did not have; a shard is one
  int known = 0;                   // that it had
  std::vector<std::string> notes;  // a sentence for what was left out: a run, a store without one
  std::vector<int64_t> campaigns;  // runs of the store, made of shards, that got one or had it
};

/// Adds every run of the stores `in` with all that belongs to it, in one transaction. Runs,
/// processes and rows are known by their names, so that what is there already is not added again,
/// and the order makes no difference. The shards of a campaign become one run, whose name is the
/// campaign's: complete where no shard is absent, else interrupted. Throws Error(usage) naming file
/// and run: for one that has not ended, of another protocol, or finished in two ways; for shards of
/// one campaign that were measured twice or under other conditions. Throws Error(store). Reads a
/// source run by run, each in a transaction of its own.
Merged merge_stores(Store& out, const std::vector<std::string>& in, const MergeOptions& options);

/// The same into the file `out`, which is made where it is missing: beside it, under another name,
/// until it is whole.
Merged merge_into(const std::string& out, const std::vector<std::string>& in,
                  const MergeOptions& options);

}  // namespace moegate
