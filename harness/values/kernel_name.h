// SPDX-License-Identifier: Apache-2.0
// The name of a kernel, shortened for people.
#pragma once

#include <string>

namespace moegate {

/// Of "void moegate::moe::(anonymous namespace)::gather<128, (moegate::DType)2>(int)":
struct KernelName {
  std::string name;      // "gather"; all of a name that has no such part
  std::string instance;  // "<128, (DType)2>"; empty: no template

  std::string whole() const { return name + instance; }
};

/// The parts of a demangled name. Unnamed namespaces and moegate's are dropped everywhere, other
/// namespaces from the kernel itself only; what it returns and its parameters go.
KernelName kernel_name(const std::string& demangled);

}  // namespace moegate
