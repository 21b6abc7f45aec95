// SPDX-License-Identifier: Apache-2.0
// This file writes what the program says on standard error beside its result: progress, notes, its
// last error.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace moegate {

/// Writes a text to standard error as it is. Where that cannot be written (closed, on a full disk,
/// a terminal that is gone) it gives up for good: what is measured matters more than what is said
/// about it.
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

/// Puts something in the place of standard input, output and error where the program was started
/// without them: else the first files it opened would take their numbers, and notes would be
/// written into the store.
void keep_standard_streams() noexcept;

// The progress line on stderr: cases done of total, the current one, time left. Rewrites one line
// on a terminal; prints a plain line now and then otherwise.

/// "45 s", "3:20 min", "2:05 h".
std::string duration_text(double seconds);
/// "[3/10, 7 s left] ", in the fourth of ten steps. One that is begun again, as where its device is
/// lost, counts once more: the last may be beyond `total`.
std::string progress_head(size_t done, size_t total, double seconds);

class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress();  // leaves the terminal on a fresh line
  /// Called before each step; `current` is what it works on.
  void step(const std::string& current);
  /// A message that stays: a crash, a fallback.
  void note(const std::string& message);

 private:
  using Clock = std::chrono::steady_clock;
  void clear_line();

  size_t total_;
  size_t begun_ = 0;
  bool terminal_;
  bool line_open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace moegate
