// SPDX-License-Identifier: Apache-2.0
// What a worker says of measured values, as JSON beside the described ones (json_fields.h). A field
// that the other side does not name keeps its default; one that this side does not know is ignored.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "harness/kernel/controls.h"
#include "harness/values/device_facts.h"
#include "harness/values/json_fields.h"

namespace moegate {

/// The enumerator of a name among `all`. Throws std::invalid_argument for a name that this build
/// does not know.
template <class E>
E named(const std::string& name, std::initializer_list<E> all) {
  for (const E e : all) {
    if (name == name_of(e)) return e;
  }
  throw std::invalid_argument("'" + name + "' is no name that this build knows");
}

inline void parse_name(const std::string& name, ControlOutcome& o) {
  o = named(name, {ControlOutcome::rejected, ControlOutcome::accepted, ControlOutcome::unchanged,
                   ControlOutcome::not_applicable});
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fact, name, value)

}  // namespace moegate
