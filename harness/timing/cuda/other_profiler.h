// SPDX-License-Identifier: Apache-2.0
// CUPTI serves one tool at a time: signs of another one.
#pragma once

#include <string>

namespace moegate {

/// Why CUPTI belongs to somebody else (a variable or a tool), read from the environment; empty: it
/// does not, as far as that says.
std::string other_profiler();

}  // namespace moegate
