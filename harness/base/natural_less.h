// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace moegate {

/// Orders by text, digits by their number: tokens=8 before tokens=16.
struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const;
  bool operator()(const std::pair<std::string, std::string>& a,
                  const std::pair<std::string, std::string>& b) const;
};

}  // namespace moegate
