// SPDX-License-Identifier: Apache-2.0
// What the store knows of the rows of a run beside their levels, put together from the run and from what
// profilers saw of the same program.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "harness/store/level_walk.h"
#include "harness/store/store.h"
#include "harness/values/row_profile.h"

namespace moegate {

/// Tag of a profiling run: the id of the run whose rows it was to explain.
constexpr const char* kWhyTag = "why_of";

/// By case key and variant.
using RowProfiles = std::map<std::pair<std::string, std::string>, RowProfile>;

/// Every row of a run, or of its cases that `cases` chooses: of others no result is read. What is measured
/// is typical() of its processes, without stalls and what verifying found. What a profiler saw is that of the
/// newest run with a result for the row: of those tagged for this run, else of the complete ones of the same
/// program and device class. `also` is called with the run's levels on the way, so that it is read once.
/// Throws Error(store) for values that no run stores.
RowProfiles read_row_profiles(Store& store, int64_t run, const CaseFilter& cases = {},
                              const std::function<void(const Level&)>& also = {});

}  // namespace moegate
