// SPDX-License-Identifier: Apache-2.0
// What MOEGATE_SABOTEUR asks of the saboteur variants: "mode" or "mode:number".
#pragma once

#include <cstdlib>
#include <string>

namespace moegate::test {

struct Sabotage {
  std::string mode = "none";
  double amount = 0;
};

inline Sabotage requested_sabotage() {
  const char* text = std::getenv("MOEGATE_SABOTEUR");
  if (!text) return {};
  const std::string spec = text;
  const size_t colon = spec.find(':');
  Sabotage sabotage{spec.substr(0, colon), 0};
  if (colon != std::string::npos) sabotage.amount = std::stod(spec.substr(colon + 1));
  return sabotage;
}

}  // namespace moegate::test
