// SPDX-License-Identifier: Apache-2.0
// What the program says on standard error beside its result: progress, notes, its last error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace moegate {

/// Writes a text to standard error as it is. Where that cannot be written (closed, on a full disk, a terminal that is
/// gone) it gives up for good: what is measured matters more than what is said about it.
void say_raw(const std::string& text) noexcept;

/// Writes a formatted text, line end included, without control characters (escape.h: printable()).
void say_text(const std::string& text) noexcept;
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    say_text(fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    // Without memory there is nothing to say.
  }
}

/// Puts something in the place of standard input, output and error where the program was started without them: else
/// the first files it opened would take their numbers, and notes would be written into the store.
void keep_standard_streams() noexcept;

}  // namespace moegate
