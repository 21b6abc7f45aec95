// SPDX-License-Identifier: Apache-2.0
// What an operator's variants are compared with: stated by its author, stored with every run.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// A variant that others of its operator replace.
struct Before {
  std::string variant;
  std::string after = "*";  // pattern (* and ?) of the variants that are compared with it
};

/// What an operator states for each backend. A variant is compared with the first one whose pattern
/// it matches and that was measured in the same case; a before is never an after.
struct Befores {
  std::vector<Before> host;  // empty: the yardstick
  std::vector<Before> cuda;  // empty: the first variant by name
};

/// An operator as a run on one backend knows it.
struct OperatorFacts {
  std::string name;
  std::string yardstick;       // host: what ratios are to; empty on a GPU
  std::vector<Before> before;  // by preference
};

}  // namespace moegate
