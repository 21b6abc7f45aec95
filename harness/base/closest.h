// SPDX-License-Identifier: Apache-2.0
// What somebody who mistyped a name may have meant.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace moegate {

/// How many bytes to insert, leave out, replace, or swap with their neighbour, to make one text of the
/// other.
size_t edit_distance(const std::string& a, const std::string& b);

/// " (did you mean 'x'?)", of the known name that is closest, for a message behind the one that was
/// typed; nothing where none is close. Upper and lower case are equal. The start of a name is close
/// to it.
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known);

}  // namespace moegate
