// SPDX-License-Identifier: Apache-2.0
#include "harness/base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace moegate {

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "f" would be a type, "float"
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

}  // namespace moegate
