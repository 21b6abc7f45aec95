// SPDX-License-Identifier: Apache-2.0
// The text of a .suite file as sections of keys with value lists. Knows neither operators nor
// cases.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace moegate {

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
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const IniEntry& entry) { return entry.key == key; });
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

}  // namespace moegate
