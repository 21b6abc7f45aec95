// SPDX-License-Identifier: Apache-2.0
// Values on the wire as JSON objects, by their field lists (fields.h). A field that the other side
// does not name keeps its default; one that this side does not know is ignored.
#pragma once

#include <nlohmann/json.hpp>

#include <concepts>
#include <stdexcept>
#include <type_traits>

#include "harness/base/names.h"
#include "harness/values/fields.h"
#include "harness/values/result_fields.h"
#include "harness/values/tolerance.h"

#ifndef NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT
// nlohmann/json before 3.11, which Ubuntu 22.04 has, knows the parts of it.
#define MOEGATE_FROM_JSON(field) \
  nlohmann_json_t.field = nlohmann_json_j.value(#field, moegate_defaults.field);
#define NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Type, ...)                      \
  inline void to_json(nlohmann::json& nlohmann_json_j, const Type& nlohmann_json_t) {   \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))            \
  }                                                                                     \
  inline void from_json(const nlohmann::json& nlohmann_json_j, Type& nlohmann_json_t) { \
    const Type moegate_defaults{};                                                      \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(MOEGATE_FROM_JSON, __VA_ARGS__))           \
  }
#endif

namespace moegate {

template <class V>
concept Integer = std::integral<V> && !std::same_as<V, bool>;

/// Throws std::invalid_argument for what is no whole number, or none that V holds: a cast would
/// make another number of it.
template <Integer V>
void read_number(const nlohmann::json& json, V& value) {
  if (json.is_number_unsigned() && std::in_range<V>(json.get<uint64_t>())) {
    value = static_cast<V>(json.get<uint64_t>());
  } else if (json.is_number_integer() && std::in_range<V>(json.get<int64_t>())) {
    value = static_cast<V>(json.get<int64_t>());
  } else {
    throw std::invalid_argument(json.dump() + " is no whole number, or too large");
  }
}

/// Whether a value has a list of its fields.
template <class T>
concept Described = count_fields(kFields<T>)
> 0;

/// Enumerators travel by name: two builds may number them differently.
template <Named E>
void to_json(nlohmann::json& json, const E& value) {
  json = name_of(value);
}
/// Throws std::invalid_argument for a name that this build does not know.
template <Named E>
void from_json(const nlohmann::json& json, E& value) {
  parse_name(json.get<std::string>(), value);
}

template <Described T>
void to_json(nlohmann::json& json, const T& value) {
  json = nlohmann::json::object();
  const auto put = [&](const auto& field) { json[field.name] = field.of(value); };
  for_each_field(kFields<T>, put);
  for_each_field(kParts<T>, put);
}

/// Throws std::invalid_argument for what is no object.
template <Described T>
void from_json(const nlohmann::json& json, T& value) {
  if (!json.is_object()) throw std::invalid_argument("an object was due, not " + json.dump());
  const auto take = [&](const auto& field) {
    const auto found = json.find(field.name);
    if (found == json.end()) return;
    if constexpr (Integer<std::remove_reference_t<decltype(field.of(value))>>) {
      read_number(*found, field.of(value));
    } else {
      found->get_to(field.of(value));
    }
  };
  for_each_field(kFields<T>, take);
  for_each_field(kParts<T>, take);
}

/// A list in the order of the members, as Python states it; null states nothing.
inline void from_json(const nlohmann::json& json, Tolerance& tolerance) {
  if (json.is_null()) return;
  tolerance = {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), json.at(5), json.at(6)};
}

}  // namespace moegate
