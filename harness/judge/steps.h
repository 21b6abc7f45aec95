// SPDX-License-Identifier: Apache-2.0
// Where the level of a row changed over runs. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/base/stats.h"

namespace moegate {

/// Steps where what is launched changed, at these places of the logarithms of levels. Such a step
/// needs no search, so that two runs before and after it are enough: Student's t-test with the
/// alpha of change_points(). `found`: steps that are known; none is looked for beside them.
std::vector<ChangePoint> steps_of_code(std::span<const double> logs,
                                       const std::vector<size_t>& code_changes,
                                       std::span<const ChangePoint> found = {});

/// Those and change_points(), in order.
std::vector<ChangePoint> steps_in(std::span<const double> logs,
                                  const std::vector<size_t>& code_changes);

/// What to say where so many runs have no step: it may be that they are too few.
std::string no_step_in(size_t runs);

}  // namespace moegate
