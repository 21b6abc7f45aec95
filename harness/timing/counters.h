// SPDX-License-Identifier: Apache-2.0
// Which counters are read where nobody names any. CUPTI's names; a chip that lacks one refuses them.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// What tells a reviewer why a kernel takes its time: bytes, hit rates, pipes, instructions, local memory, bank
/// conflicts, what warps wait for. Eight passes on GH100; throughputs of whole units, which alone take 4
/// to 8 passes each, are left to their parts.
const std::vector<std::string>& default_counters();

}  // namespace moegate
