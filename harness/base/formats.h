// SPDX-License-Identifier: Apache-2.0
// This file reads formats that others write: sections of keys (.suite, .ini), JSON, and NumPy's
// arrays.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace moegate {

/// Where in a text that somebody wrote something is.
struct TextPlace {
  std::string path;
  int line = 0;

  /// Throws Error(usage), whose message begins with this place.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{}:{}: {}", path, line, fmt::format(format, std::forward<Args>(args)...));
  }
};

struct IniEntry {
  std::string key;
  int line = 0;
  std::vector<std::string> values;  // at least one, none empty
};

struct IniSection {
  std::string name;  // empty for the keys before the first [section]
  int line = 0;
  std::vector<IniEntry> entries;  // in file order, keys differ

  const IniEntry* find(const std::string& key) const {
    const auto found = std::ranges::find(entries, key, &IniEntry::key);
    return found == entries.end() ? nullptr : &*found;
  }
};

struct IniFile {
  std::string path;
  std::vector<IniSection> sections;  // keys before the first [section], then one or more sections
};

/// Throws Error(usage) naming file and line for a malformed line, a repeated section or key, an
/// empty value list, and a file without sections.
IniFile parse_ini(const std::string& path, const std::string& text);

/// Lists within lists of a text that is read: whoever walks a value may call itself so often.
constexpr int kDeepestJson = 64;

/// The value that a text is. `where` is what messages begin with: a path, or a path and a line.
/// Throws Error(usage) for what is no JSON, and for what is nested deeper than kDeepestJson.
nlohmann::json parse_json(const std::string& where, std::string_view text);

// Reads NumPy's .npy format (versions 1 to 3), as far as recorded expert ids need it: two
// dimensions, C order, little-endian int16, int32 or int64. Knows nothing of what the numbers mean.

struct IntTable {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> values;  // row-major

  int64_t at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

/// Throws Error(usage) naming the path, what is wrong with it, and the remedy.
IntTable read_npy(const std::string& path);

}  // namespace moegate
