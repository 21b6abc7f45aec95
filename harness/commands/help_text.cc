// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/help_text.h"

#include <iostream>
#include <sstream>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/commands/commands.h"

namespace moegate {
namespace {

constexpr std::string_view kHelpLine = "\n  -h [ --help ]";

size_t description_column(const std::string& text) {
  const size_t line = text.find(kHelpLine);
  const size_t about =
      line == std::string::npos ? line : text.find_first_not_of(' ', line + kHelpLine.size());
  if (about == std::string::npos) {
    throw Error(Exit::internal, fmt::format("a help without the line of --help: '{}'", text));
  }
  return about - line - 1;
}

/// "--db PATH (=results.sqlite)"
HelpFlag read_name(const std::string& text) {
  if (text.starts_with("-h ")) return {"--help"};
  const size_t unset = text.find(" (=");
  const std::string typed = text.substr(0, unset);
  const size_t space = typed.find(' ');
  HelpFlag flag{typed.substr(0, space)};
  if (space != std::string::npos) flag.value = typed.substr(space + 1);
  if (unset != std::string::npos) flag.if_unset = text.substr(unset + 3, text.size() - unset - 4);
  return flag;
}

HelpFlag read_flag(const std::string& line, size_t column) {
  // The description of a long name is on the next line.
  const bool described = line.size() > column && line[column - 1] == ' ';
  HelpFlag flag = read_name(trimmed(described ? line.substr(0, column) : line));
  if (described) flag.about = trimmed(line.substr(column));
  return flag;
}

void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += ' ';
  text += more;
}

/// While it is alive, what is written to std::cout is kept here instead.
class KeptOutput {
 public:
  KeptOutput() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~KeptOutput() { std::cout.rdbuf(before_); }
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

}  // namespace

const HelpFlag* HelpText::find(const std::string& name) const {
  for (const HelpGroup& group : groups) {
    for (const HelpFlag& flag : group.flags) {
      if (flag.name == name) return &flag;
    }
  }
  return nullptr;
}

HelpText parse_help(const std::string& text) {
  const size_t column = description_column(text);
  HelpText help;
  std::istringstream lines(text);
  std::string line;
  const size_t usage = std::string_view("usage: ").size();
  while (std::getline(lines, line) && line.size() > usage) {
    help.usages.push_back(line.substr(usage));
  }
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    if (line[0] != ' ') {
      help.groups.push_back({line.substr(0, line.rfind(':')), {}});
    } else if (help.groups.empty()) {
      throw Error(Exit::internal, fmt::format("a help with flags of no group: '{}'", line));
    } else if (line.starts_with("  -")) {
      help.groups.back().flags.push_back(read_flag(line, column));
    } else if (!help.groups.back().flags.empty()) {
      append(help.groups.back().flags.back().about, trimmed(line));
    }
  }
  return help;
}

HelpText help_of(const Command& command) {
  const KeptOutput kept;
  command.run({"--help"});
  return parse_help(kept.text());
}

}  // namespace moegate
