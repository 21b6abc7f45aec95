// SPDX-License-Identifier: Apache-2.0
// What is merged: stores, and which of their runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/store/merge.h"

namespace moegate {

/// A store that is merged. It is read in short transactions: others go on writing into it.
struct Source {
  /// Throws Error(store) for what is no intact store of this version.
  explicit Source(const std::string& path);
  Database& db() { return store.database(); }
  /// What a message calls one of its runs.
  std::string who(const RunInfo& run);

  Store store;
  std::vector<RunInfo> runs;  // that are merged, by their start
};
using Sources = std::vector<std::unique_ptr<Source>>;

/// A row of the table `shard`, its device by the number that it has where it comes from.
struct Shard {
  int shard = 0;
  int64_t device = 0;
  std::string uuid, label, started, finished, host, command, tags;
};

/// What a run is made of: itself, where it is a shard, or those that were merged.
std::vector<Shard> shards_of(Source& in, const RunInfo& run);

/// In the order of their first runs, so that these are numbered alike whatever was typed first. A store without a run, as
/// a shard leaves that died at birth, is left out with a note. Throws Error(usage) where one of them is `out`.
Sources open_sources(const std::vector<std::string>& paths, const std::string& out,
                     std::vector<std::string>& notes);

/// Leaves in each source the runs that are merged, and adds a note for each other one. Throws Error(usage) for a run that
/// has not ended or is of another protocol, Error(coverage) where nothing is left.
void choose_runs(Store& out, const MergeOptions& options, Sources& sources,
                 std::vector<std::string>& notes);

}  // namespace moegate
