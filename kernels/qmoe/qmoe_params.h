// SPDX-License-Identifier: Apache-2.0
// What the registrations of operators with int4 products have in common.
#pragma once

#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate::qmoe {

/// The parameters that QmoeFc1::shape_of() reads, all that a layer has.
std::vector<Param> fc1_params();
/// The single pass that accumulates alike; bf16 is never accumulated in fp16.
Befores befores();

}  // namespace moegate::qmoe
