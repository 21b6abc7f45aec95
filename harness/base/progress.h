// SPDX-License-Identifier: Apache-2.0
// The progress line on stderr: cases done of total, the current one, time left. Rewrites one line
// on a terminal; prints a plain line now and then otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace moegate {

/// "45 s", "3:20 min", "2:05 h".
std::string duration_text(double seconds);
/// "[3/10, 7 s left] ", in the fourth of ten steps. One that is begun again, as where its device is lost,
/// counts once more: the last may be beyond `total`.
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
