// SPDX-License-Identifier: Apache-2.0
#include "harness/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "harness/base/escape.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i) {
    if (starts_character(text[i])) starts.push_back(i);
  }
  return starts;
}

bool is_set(const char* variable) {
  return variable && *variable != '\0';
}

}  // namespace

bool is_terminal(int fd) {
  return isatty(fd) != 0;
}

size_t line_width(const char* columns, size_t terminal) {
  constexpr size_t kUnknown = 80, kLeast = 20;
  const auto set = columns ? parse_number<size_t>(columns) : std::nullopt;
  const size_t width = set.value_or(0) > 0 ? *set : terminal > 0 ? terminal : kUnknown;
  return std::max(width, kLeast);
}

bool allows_colour(const char* no_color, const char* force, const char* term, bool terminal) {
  if (is_set(no_color)) return false;
  if (is_set(force) && std::string_view(force) != "0") return true;
  return terminal && !(term && std::string_view(term) == "dumb");
}

Screen screen_of(int fd) {
  constexpr size_t kElsewhere = 160;  // a pipe, a file, a log
  winsize size{};
  const bool terminal = is_terminal(fd);
  if (terminal) ioctl(fd, TIOCGWINSZ, &size);
  return {line_width(std::getenv("COLUMNS"), terminal ? size.ws_col : kElsewhere),
          allows_colour(std::getenv("NO_COLOR"), std::getenv("CLICOLOR_FORCE"), std::getenv("TERM"),
                        terminal)};
}

size_t display_width(std::string_view utf8) {
  return static_cast<size_t>(std::ranges::count_if(utf8, starts_character));
}

std::string shortened(const std::string& text, size_t characters) {
  const std::vector<size_t> starts = character_starts(text);
  if (starts.size() <= characters) return text;
  if (characters == 0) return "";
  const size_t back = (characters - 1) / 2, front = characters - 1 - back;
  const size_t tail = back == 0 ? text.size() : starts[starts.size() - back];
  return text.substr(0, starts[front]) + "…" + text.substr(tail);
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  bool open = false;  // a word may still be added to the last line
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    // A number stays with its per cent sign.
    if (text.substr(end).starts_with(" %")) end = std::min(text.find(' ', end + 1), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (open && display_width(lines.back()) + 1 + display_width(word) <= width) {
      lines.back().append(" ").append(word);
      continue;
    }
    while (display_width(word) > width) {
      const size_t end_of_line = character_starts(word)[width];
      const size_t comma = word.rfind(',', end_of_line - 1);
      const size_t cut = comma == std::string_view::npos ? end_of_line : comma + 1;
      lines.emplace_back(word.substr(0, cut));
      word.remove_prefix(cut);
    }
    if (!word.empty()) lines.emplace_back(word);
    open = true;
  }
  return lines;
}

std::string sparkline(const std::vector<double>& values, double least_span) {
  constexpr std::array kBars = {"▁", "▂", "▃", "▅", "▇"};
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double v) { return std::isfinite(v); });
  if (finite.empty()) return std::string(values.size(), ' ');
  const auto [low, high] = std::ranges::minmax(finite);
  const double span = std::max(high - low, least_span);
  std::string line;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      line += " ";
      continue;
    }
    const double share = span > 0 ? (v - low) / span : 0;
    const auto bar = std::min(static_cast<size_t>(share * kBars.size()), kBars.size() - 1);
    line += kBars.at(bar);
  }
  return line;
}

}  // namespace moegate
