// SPDX-License-Identifier: Apache-2.0
// Where warps wait in two stored runs of Task::stalls, base beside head.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

/// A section of rank 1 for every case and variant that both sides hold: how much was sampled, and a table
/// of the `most` instructions that changed most (align_stalls()), shares in percent of the launch's
/// samples. Sides are what Store::levels_with_launches() gives; their processes are added up.
std::vector<Section> stall_sections(const std::vector<Level>& base, const std::vector<Level>& head,
                                    size_t most = 10);

/// The same of two runs, with a first sentence. Throws Error(usage) for a run of another task, and for
/// runs without a common row.
Page stall_page(Store& store, int64_t base, int64_t head, size_t most = 10);

}  // namespace moegate
