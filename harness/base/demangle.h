// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace moegate {

/// The C++ name of a symbol; the symbol itself where it is none.
std::string demangle(const std::string& symbol);

}  // namespace moegate
