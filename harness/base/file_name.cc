// SPDX-License-Identifier: Apache-2.0
#include "harness/base/file_name.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>

#include "harness/base/error.h"

namespace moegate {

bool is_file_name(std::string_view text) {
  if (text.empty() || text[0] == '.' || text[0] == '-') return false;
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c == '/' || c < ' ' || c == 0x7f; });
}

std::string random_name() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    throw Error(Exit::environment, "the system gives no random numbers");
  }
  return fmt::format("{:016x}", number);
}

}  // namespace moegate
