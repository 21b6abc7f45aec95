// SPDX-License-Identifier: Apache-2.0
// What the registrations of operators with int4 products have in common.
#pragma once

#include <string>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate::qmoe {

/// The parameters that QmoeFc1::shape_of() reads, all that a layer has.
std::vector<Param> fc1_params();
/// The single pass that accumulates alike; bf16 is never accumulated in fp16.
Befores befores();
/// Of their variants `tuned`: any but sums in fp16.
Tuning tuning(std::vector<std::string> (*usual)(const Case&, const DeviceFacts&));

}  // namespace moegate::qmoe
