// SPDX-License-Identifier: Apache-2.0
// Until when something may go on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace moegate {

/// Seconds since some moment; never goes back.
using WallClock = std::function<double()>;

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Default: never.
class Deadline {
 public:
  Deadline() = default;
  /// In so many seconds from now.
  explicit Deadline(double seconds, WallClock clock = steady_seconds)
      : clock_(std::move(clock)), at_(clock_() + seconds) {}

  /// Seconds; infinite without one, negative once it has passed.
  double left() const { return clock_ ? at_ - clock_() : std::numeric_limits<double>::infinity(); }
  bool passed() const { return left() <= 0; }
  /// How many of these rows there is time for; all where nobody knows how long one takes (0).
  size_t affords(size_t rows, double seconds_each) const {
    if (!is_set() || !(seconds_each > 0)) return rows;
    const double fit = std::max(left(), 0.0) / seconds_each;
    return fit < static_cast<double>(rows) ? static_cast<size_t>(fit) : rows;
  }
  bool is_set() const { return clock_ != nullptr; }
  /// Of its clock.
  double now() const { return clock_ ? clock_() : steady_seconds(); }
  /// This one, or sooner.
  Deadline within(double seconds) const {
    return seconds < left() ? Deadline(seconds, clock_ ? clock_ : steady_seconds) : *this;
  }

 private:
  WallClock clock_;
  double at_ = 0;
};

}  // namespace moegate
