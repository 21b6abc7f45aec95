// SPDX-License-Identifier: Apache-2.0
// Where warps wait in two stored runs of Task::stalls, base beside head.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/report/explain.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

/// A section of rank 1 for every case and variant that both sides hold: how much was sampled, and a table
/// of the `most` instructions that changed most (align_stalls()), shares in percent of the launch's
/// samples. Sides are what Store::levels_with_launches() gives; their processes are added up.
std::vector<Section> stall_sections(const std::vector<Level>& base, const std::vector<Level>& head,
                                    size_t most = 10);

/// Whether both runs hold what stall_page() shows.
bool are_of_stalls(const RunInfo& base, const RunInfo& head);

/// The same of the rows of two such runs that a question is about, with a first sentence. Throws
/// Error(usage) for a bad pattern and Error(coverage) where there is none in common.
Page stall_page(Store& store, const ExplainQuery& query, size_t most = 10);

}  // namespace moegate
