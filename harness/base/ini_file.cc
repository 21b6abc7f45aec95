// SPDX-License-Identifier: Apache-2.0
// Boost's config-file parser reads the values. Because it silently merges repeated sections and
// keys and tells no line numbers, a scan of the raw lines comes first and refuses what Boost would
// accept.
#include "harness/base/ini_file.h"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

bool only_of(const std::string& text, const std::string& extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string::npos;
  });
}

class Scanner {
 public:
  explicit Scanner(const std::string& path) : path_(path), sections_(1) {}

  std::vector<IniSection> scan(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      ++line_;
      scan_line(line);
    }
    return std::move(sections_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{}:{}: {}", path_, line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void scan_line(const std::string& raw) {
    const size_t hash = raw.find('#');
    // Boost ends a line at '#' wherever it stands; a path or name with '#' would lose its end.
    if (hash != std::string::npos && hash > 0 && raw[hash - 1] != ' ' && raw[hash - 1] != '\t') {
      fail(
          "'#' starts a comment even inside '{}'; put a blank before a comment, and rename what "
          "contains '#'",
          trimmed(raw));
    }
    const std::string line = trimmed(raw.substr(0, hash));
    if (line.empty()) return;
    if (line.front() == '[') return scan_section(line);
    const size_t equals = line.find('=');
    const std::string key = trimmed(line.substr(0, equals));
    if (equals == std::string::npos || !only_of(key, "-_")) {
      fail("malformed line '{}'; write 'name = value, value' or '[section]'", line);
    }
    IniSection& section = sections_.back();
    if (const IniEntry* first = section.find(key)) {
      fail("'{}' is repeated (first on line {}); write all its values in one comma-separated list",
           key, first->line);
    }
    section.entries.push_back({key, line_, {}});
  }

  void scan_section(const std::string& line) {
    const std::string name = line.back() == ']' ? line.substr(1, line.size() - 2) : "";
    // A final '.' would make it the same section to Boost as the name without it.
    if (!only_of(name, "-_.") || name.back() == '.') {
      fail("malformed section '{}'; write [name] with letters, digits, '-', '_' and inner '.'",
           line);
    }
    for (const IniSection& other : sections_) {
      if (other.name != name) continue;
      fail("section [{}] is repeated (first on line {}); merge the two or rename one", name,
           other.line);
    }
    sections_.push_back({name, line_, {}});
  }

  const std::string& path_;
  std::vector<IniSection> sections_;
  int line_ = 0;
};

/// Boost returns one option per line in file order, so the n-th is the scan's n-th entry.
void read_values(const std::string& text, IniFile& file) {
  std::istringstream in(text);
  const boost::program_options::options_description none;
  const auto parsed = boost::program_options::parse_config_file(in, none, true);
  size_t next = 0;
  for (IniSection& section : file.sections) {
    const std::string prefix = section.name.empty() ? "" : section.name + ".";
    for (IniEntry& entry : section.entries) {
      if (next == parsed.options.size() || parsed.options[next].string_key != prefix + entry.key) {
        throw Error(Exit::internal, fmt::format("{}:{}: scan and parser disagree about '{}'",
                                                file.path, entry.line, entry.key));
      }
      const auto& values = parsed.options[next++].value;
      entry.values = split_list(values.empty() ? "" : values[0]);
      if (std::find(entry.values.begin(), entry.values.end(), "") != entry.values.end()) {
        usage_error(
            "{}:{}: [{}] parameter '{}' has an empty value list or element; give each comma "
            "a value on both sides",
            file.path, entry.line, section.name, entry.key);
      }
    }
  }
}

}  // namespace

IniFile parse_ini(const std::string& path, const std::string& text) {
  IniFile file{path, Scanner(path).scan(text)};
  read_values(text, file);
  if (file.sections.size() == 1) {
    usage_error("{}: has no [section]; put the parameters of each model in one", path);
  }
  return file;
}

}  // namespace moegate
