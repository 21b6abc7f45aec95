// SPDX-License-Identifier: Apache-2.0
// This file says which runs of the source stores a merge takes, and what one run the shards of a
// campaign become.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/store/merge.h"
#include "harness/store/store.h"
#include "harness/values/fields.h"

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

/// A row of the table `shard`, its device by the number that it has in one store.
struct Shard {
  int shard = 0;
  int64_t device_id = 0;
  std::string uuid, label, started, finished, host, command, tags;
};

template <>
inline constexpr auto kFields<Shard> = MOEGATE_FIELDS(Shard, shard, device_id, uuid, label, started,
                                                      finished, host, command, tags);
static_assert(count_unlisted<Shard>() == 0);

/// What a run is made of: itself, where it is a shard, or those that were merged.
std::vector<Shard> shards_of(Source& in, const RunInfo& run);

/// In the order of their first runs, so that these are numbered alike whatever was typed first. A
/// store without a run, as a shard leaves that died at birth, is left out with a note. Throws
/// Error(usage) where one of them is `out`.
Sources open_sources(const std::vector<std::string>& paths, const std::string& out,
                     std::vector<std::string>& notes);

/// Leaves in each source the runs that are merged, and adds a note for each other one. Throws
/// Error(usage) for a run that has not ended or is of another protocol, Error(coverage) where
/// nothing is left.
void choose_runs(Store& out, const MergeOptions& options, Sources& sources,
                 std::vector<std::string>& notes);

/// The options of a shard as those of all shards together. Throws Error(store) for what no run
/// has stored.
std::string options_of_all(Store& store, const std::string& options);

/// Throws Error(usage) naming both where a shard, or a merged run, was not measured under the
/// conditions of the campaign's run. `who` is what a message calls it.
void check_same_campaign(const RunInfo& campaign, const RunInfo& part, const std::string& who);

/// Has the campaign's run state what its shards do: their devices, tags and times, and whether any
/// is absent.
void sum_up_shards(Store& store, int64_t run);

/// Devices that stand for several and that no run is on any more.
void drop_unused_devices(Store& store);

}  // namespace moegate
