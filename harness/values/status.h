// SPDX-License-Identifier: Apache-2.0
// What became of a variant on a case.
#pragma once

#include <array>
#include <string>

namespace moegate {

enum class Status { ok, unsupported, wrong, crashed, timeout, bad_timer, noisy };
const char* name_of(Status s);
void parse_name(const std::string& name, Status& s);  // throws std::invalid_argument

/// A row is as bad as its worst process.
inline constexpr std::array kWorstFirst = {Status::wrong,     Status::crashed,     Status::timeout,
                                           Status::bad_timer, Status::unsupported, Status::noisy,
                                           Status::ok};
bool is_worse(Status a, Status b);
/// Wrong, crashed, timeout or bad_timer.
bool is_failure(Status s);

/// What a result has to be: of an honest variant `ok`, of a saboteur what its author says.
struct ExpectedResult {
  Status status = Status::ok;
  std::string why;  // part of the reason
};

}  // namespace moegate
