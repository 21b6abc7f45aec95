// SPDX-License-Identifier: Apache-2.0
// Negative controls: correct outputs spoilt on purpose, each of which check() must reject. They
// test the tolerance, not a variant: one that accepts a control is blind to that kind of fault.
#pragma once

#include <vector>

#include "harness/kernel/check.h"
#include "harness/kernel/kernel.h"

namespace moegate {

/// Applies every control to `problem`, which must hold correct outputs and holds them again
/// afterwards. `other` holds the outputs of another seed. Each output tensor is spoilt on its own,
/// because an exact tensor would otherwise hide another's blind tolerance:
/// - unwritten: filled with poison. If this is accepted, nothing looks at the output
/// - zeros
/// - constant: the mean of a floating output, the first element of another
/// - scaled by 1.05: floating outputs
/// - stale: the output of `other`
/// and the operator's corruptions(). A control is `unchanged` when check()'s hash stays the same.
std::vector<Control> negative_controls(Problem& problem, const Problem& other);

/// One sentence that names every accepted control with what it passed; empty when there is none.
std::string blind_spots(const std::vector<Control>& controls);

}  // namespace moegate
