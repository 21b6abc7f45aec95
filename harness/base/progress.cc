// SPDX-License-Identifier: Apache-2.0
#include "harness/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "harness/base/escape.h"
#include "harness/base/notes.h"

namespace moegate {
namespace {

/// Characters in a line of the terminal; it may have changed since it was last asked.
size_t terminal_width() {
  constexpr size_t kUnknown = 80;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnknown;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02} min", s / 60, s % 60);
  return fmt::format("{}:{:02} h", s / 3600, s / 60 % 60);
}

std::string shortened(const std::string& text, size_t characters) {
  std::vector<size_t> starts;  // of the characters
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) != 0x80) starts.push_back(i);
  }
  if (starts.size() <= characters) return text;
  if (characters == 0) return "";
  const size_t back = (characters - 1) / 2, front = characters - 1 - back;
  const size_t tail = back == 0 ? text.size() : starts[starts.size() - back];
  return text.substr(0, starts[front]) + "…" + text.substr(tail);
}

Progress::Progress(size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

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
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string left;
  if (done > 0) {
    const double per_step = elapsed / static_cast<double>(done);
    left = ", " + duration_text(per_step * static_cast<double>(total_ - done)) + " left";
  }
  const std::string head = fmt::format("[{}/{}{}] ", done, total_, left);
  if (!terminal_) return say("{}{}\n", head, one_line(current));
  // A line that reaches the last column wraps in some terminals.
  const size_t width = terminal_width() - 1;
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
