// SPDX-License-Identifier: Apache-2.0
#include "harness/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace moegate {
namespace {

std::string time_left(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  return s < 60 ? fmt::format("{} s", s) : fmt::format("{}:{:02} min", s / 60, s % 60);
}

}  // namespace

Progress::Progress(size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  clear_line();
}

void Progress::clear_line() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
  line_open_ = false;
}

void Progress::step(const std::string& current) {
  const size_t done = begun_++;
  const auto now = Clock::now();
  constexpr auto kTerminalEvery = std::chrono::milliseconds(100);
  constexpr auto kPlainEvery = std::chrono::seconds(10);
  const auto every = terminal_ ? Clock::duration(kTerminalEvery) : Clock::duration(kPlainEvery);
  if (last_ != Clock::time_point{} && now - last_ < every) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string left;
  if (done > 0) {
    const double per_step = elapsed / static_cast<double>(done);
    left = ", " + time_left(per_step * static_cast<double>(total_ - done)) + " left";
  }
  const std::string line = fmt::format("[{}/{}{}] {}", done, total_, left, current);
  if (terminal_) {
    constexpr size_t kWidth = 120;
    fmt::print(stderr, "\r\033[K{}", line.substr(0, kWidth));
    line_open_ = true;
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
}

void Progress::note(const std::string& message) {
  clear_line();
  fmt::print(stderr, "{}\n", message);
}

}  // namespace moegate
