// SPDX-License-Identifier: Apache-2.0
// Whether outputs got worse, seed by seed on the same inputs. Pure functions on two Sides.
#pragma once

#include <optional>

#include "harness/evidence.h"

namespace moegate {

/// Mean over the seeds that both sides have of log2(error of head / error of base): +1 is twice the
/// error, 0 for bit-identical outputs. Nothing when they share no seed.
std::optional<double> accuracy_change_bits(const Side& base, const Side& head);

}  // namespace moegate
