// SPDX-License-Identifier: Apache-2.0
// Messages between the runner and its worker processes: length-prefixed CBOR (which, unlike JSON,
// carries NaN) over a pipe. The worker may be another build of moegate (the base of an A/B): fields
// are named, a field that one side does not know keeps its default, and kWire changes when that is
// not enough.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

#include "harness/kernel/kernel.h"
#include "harness/values/json_fields.h"

namespace moegate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fact, name, value)

/// Version of the conversation; programs of different versions do not talk.
constexpr int kWire = 2;

/// Writes one message; false when the other end is gone.
bool send(int fd, const nlohmann::json& message);

enum class Arrival { message, closed, timeout };
/// Waits up to `timeout_s` for a whole message (negative: for ever).
Arrival receive(int fd, double timeout_s, nlohmann::json& message);

}  // namespace moegate
