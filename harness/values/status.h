// SPDX-License-Identifier: Apache-2.0
// What became of a variant on a case.
#pragma once

#include <array>
#include <string>

#include "harness/base/names.h"

namespace moegate {

enum class Status { ok, unsupported, wrong, crashed, timeout, bad_timer, noisy };
template <>
inline constexpr std::array kNames<Status> = {"ok",      "unsupported", "wrong", "crashed",
                                              "timeout", "bad_timer",   "noisy"};
template <>
inline constexpr const char* kNameKind<Status> = "status of a result";

/// A row is as bad as its worst process.
inline constexpr std::array kWorstFirst = {Status::wrong,     Status::crashed,     Status::timeout,
                                           Status::bad_timer, Status::unsupported, Status::noisy,
                                           Status::ok};
static_assert(kWorstFirst.size() == kNames<Status>.size());
bool is_worse(Status a, Status b);
/// Wrong, crashed, timeout or bad_timer.
bool is_failure(Status s);

/// What a result has to be: of an honest variant `ok`, of a saboteur what its author says.
struct ExpectedResult {
  Status status = Status::ok;
  std::string why;  // part of the reason
};

}  // namespace moegate
