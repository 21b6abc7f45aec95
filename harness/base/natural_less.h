// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace moegate {

/// Orders by text, digits by their number: tokens=8 before tokens=16.
struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const { return compare(a, b) < 0; }
  bool operator()(const std::pair<std::string, std::string>& a,
                  const std::pair<std::string, std::string>& b) const;
  /// Below, equal to or above 0.
  static int compare(std::string_view a, std::string_view b);
};

}  // namespace moegate
