// SPDX-License-Identifier: Apache-2.0
// What tests expect of an error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "harness/base/error.h"

namespace moegate {

/// The message of the Error that `call` throws, which has to have this code; "accepted" where it throws none.
template <class Call>
std::string refusal_of(const Call& call, Exit code = Exit::usage) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "accepted";
}

}  // namespace moegate
