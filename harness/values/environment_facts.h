// SPDX-License-Identifier: Apache-2.0
// What a process ran with beside its kernels: interpreter, packages, libraries, compilers and
// variables; and how the environments of two runs differ.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "harness/values/fields.h"

namespace moegate {

struct EnvironmentItem {
  std::string kind;    // python, package, library, tool, variable
  std::string name;    // "triton", "libcublasLt.so.13", "VLLM_USE_DEEP_GEMM"
  std::string value;   // a version, or what a variable holds; empty: unknown, or a secret
  std::string digest;  // of its content; empty: none is known
  /// In the hash. A variable that names folders does not: what was loaded from there does.
  bool counts = true;

  auto operator<=>(const EnvironmentItem&) const = default;
};

/// In order, each item once.
using EnvironmentItems = std::vector<EnvironmentItem>;

template <>
inline constexpr auto kFields<EnvironmentItem> = MOEGATE_FIELDS(EnvironmentItem, kind, name, value,
                                                                digest, counts);
static_assert(count_unlisted<EnvironmentItem>() == 0);

/// Sorted, without repetitions.
EnvironmentItems in_order(std::vector<EnvironmentItem> items);
/// Of all that counts, 16 hex digits; empty where nothing does.
std::string hash_of(const EnvironmentItems& environment);

/// Whether the name of a variable says that its text is nobody's business.
bool is_secret(const std::string& variable);

/// An item that two environments have otherwise, as texts: "3.5.1", "3.6.0". A side that lacks it
/// is "none", or "unset" of a variable; of the same texts another content differs.
struct EnvironmentChange {
  std::string kind, name, base, head;

  std::string text() const;  // "triton 3.5.1 -> 3.6.0"
  bool operator==(const EnvironmentChange&) const = default;
};
/// Of what counts, by kind and name. None where one of them is unknown.
std::vector<EnvironmentChange> changes_between(const EnvironmentItems& base,
                                               const EnvironmentItems& head);

/// The first item that both have, and otherwise. What one of them lacks it need not have loaded
/// yet: a package, modules of one, a second library of one name. Empty: none.
std::string contradiction(const EnvironmentItems& a, const EnvironmentItems& b);

}  // namespace moegate
