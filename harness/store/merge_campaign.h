// SPDX-License-Identifier: Apache-2.0
// The one run that the shards of a campaign become.
#pragma once

#include <cstdint>
#include <string>

#include "harness/store/store.h"

namespace moegate {

/// The options of a shard as those of all shards together. Throws Error(store) for what no run has stored.
std::string options_of_all(Store& store, const std::string& options);

/// Throws Error(usage) naming both where a shard, or a merged run, was not measured under the conditions of the campaign's
/// run. `who` is what a message calls it.
void check_same_campaign(const RunInfo& campaign, const RunInfo& part, const std::string& who);

/// Has the campaign's run state what its shards do: their devices, tags and times, and whether any is absent.
void sum_up_shards(Store& store, int64_t run);

/// Devices that stand for several and that no run is on any more.
void drop_unused_devices(Store& store);

}  // namespace moegate
