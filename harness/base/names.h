// SPDX-License-Identifier: Apache-2.0
// The names of an enumeration's values: as the store, the wire and people spell them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace moegate {

/// In the order of the values. An enumeration that has names specialises it.
template <class E>
inline constexpr std::array<const char*, 0> kNames{};
/// What a name is, for the message about one that no value has.
template <class E>
inline constexpr const char* kNameKind = "name that this build knows";

template <class E>
concept Named = (kNames<E>.size() > 0);

template <Named E>
constexpr const char* name_of(E value) {
  return kNames<E>.at(static_cast<size_t>(value));
}

/// Throws std::invalid_argument for a name that no value has.
template <Named E>
void parse_name(const std::string& name, E& value) {
  const auto at = std::ranges::find(kNames<E>, name);
  if (at == kNames<E>.end()) throw std::invalid_argument("'" + name + "' is no " + kNameKind<E>);
  value = static_cast<E>(at - kNames<E>.begin());
}

}  // namespace moegate
