// SPDX-License-Identifier: Apache-2.0
#include "harness/base/notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>

#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/terminal.h"

namespace moegate {
namespace {

std::atomic<bool> given_up = false;

}  // namespace

void say_raw(const std::string& text) noexcept {
  if (!given_up && !write_all(STDERR_FILENO, text.data(), text.size())) given_up = true;
}

void say_text(const std::string& text) noexcept {
  try {
    say_raw(printable(text));
  } catch (...) {
    // Without memory there is nothing to say.
  }
}

void keep_standard_streams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Not to be written to, so that an output is not lost
    // without a word.
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) return;
  }
}

std::string duration_text(double seconds) {
  const auto s = std::lround(seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02} min", s / 60, s % 60);
  return fmt::format("{}:{:02} h", s / 3600, s / 60 % 60);
}

std::string progress_head(size_t done, size_t total, double seconds) {
  total = std::max(total, done + 1);
  std::string left;
  if (done > 0) {
    const double per_step = seconds / static_cast<double>(done);
    left = ", " + duration_text(per_step * static_cast<double>(total - done)) + " left";
  }
  return fmt::format("[{}/{}{}] ", done, total, left);
}

Progress::Progress(size_t total) : total_(total), terminal_(is_terminal(STDERR_FILENO)) {}

Progress::~Progress() {
  clear_line();
}

void Progress::clear_line() {
  if (line_open_) say_raw("\r\033[K");
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
  const std::string head =
      progress_head(done, total_, std::chrono::duration<double>(now - start_).count());
  if (!terminal_) return say("{}{}\n", head, one_line(current));
  // A line that reaches the last column wraps in some terminals.
  const size_t width = screen_of(STDERR_FILENO).width - 1;
  say_raw(
      "\r\033[K" +
      shortened(head + shortened(one_line(current), width - std::min(width, head.size())), width));
  line_open_ = true;
}

void Progress::note(const std::string& message) {
  clear_line();
  say("{}\n", message);
}

}  // namespace moegate
