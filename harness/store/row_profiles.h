// SPDX-License-Identifier: Apache-2.0
// This file reads what the processes of a run were seen to do: counters, stalls and launches; of
// two runs at the same time.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/store/level_walk.h"
#include "harness/store/store.h"
#include "harness/values/row_profile.h"

namespace moegate {

/// Tag of a profiling run: the id of the run whose rows it was to explain.
constexpr const char* kWhyTag = "why_of";

/// By case key and variant.
using RowProfiles = std::map<std::pair<std::string, std::string>, RowProfile>;

/// Every row of a run, or of its cases that `cases` chooses: of others no result is read. What is
/// measured is typical() of its processes, without stalls and what verifying found. What a profiler
/// saw is that of the newest run with a result for the row: of those tagged for this run, else of
/// the complete ones of the same program and device class. `also` is called with the run's levels
/// on the way, so that it is read once. Throws Error(store) for values that no run stores.
RowProfiles read_row_profiles(Store& store, int64_t run, const CaseFilter& cases = {},
                              const std::function<void(const Level&)>& also = {});

/// Every shape in which a run launched a kernel, once: name, block and dynamic shared memory.
/// Without memory operations.
std::vector<KernelRow> launches_of(Store& store, int64_t run);

/// What `read(store, run)` makes of two runs of a store, which are read at the same time: the first
/// by a connection of its own, so that `read` may change nothing else. Throws what `read` throws.
template <class Read>
auto of_two_runs(Store& store, int64_t first, int64_t second, const Read& read) {
  auto before = std::async(std::launch::async, [&path = store.database().path(), first, &read] {
    Store own = Store::open(path, Store::Mode::read);
    return read(own, first);
  });
  auto after = read(store, second);
  return std::pair(before.get(), std::move(after));
}

}  // namespace moegate
