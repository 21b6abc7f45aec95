// SPDX-License-Identifier: Apache-2.0
// Keys of parts, without the parts that all of them share.
#include <algorithm>
#include <set>

#include "harness/base/table.h"

namespace moegate {
namespace {

constexpr const char* kEllipsis = "…";

struct Part {
  std::string text;
  std::string separator;  // before it
};

std::vector<Part> parts_of(const std::string& key) {
  std::vector<Part> parts;
  std::string separator;
  for (size_t at = 0;;) {
    const size_t end = key.find_first_of("/,", at);
    parts.push_back({key.substr(at, end - at), separator});
    if (end == std::string::npos) return parts;
    separator = key[end];
    at = end + 1;
  }
}

std::string folded(const std::vector<Part>& parts, const std::set<std::string>& shared) {
  std::string text;
  bool gap = false;
  for (const Part& part : parts) {
    if (shared.contains(part.text)) {
      if (!gap) text += kEllipsis;
      gap = true;
    } else {
      text += (gap ? "" : part.separator) + part.text;
      gap = false;
    }
  }
  return text;
}

/// The parts that are shared, and of the others their names.
std::string without_values(const std::vector<Part>& parts, const std::set<std::string>& shared) {
  std::string text;
  for (const Part& part : parts) {
    const size_t equals = part.text.find('=');
    const size_t name = equals == std::string::npos ? 0 : equals + 1;
    text += part.separator +
            (shared.contains(part.text) ? part.text : part.text.substr(0, name) + kEllipsis);
  }
  return text;
}

}  // namespace

FoldedKeys fold_keys(const std::vector<std::string>& keys) {
  const bool all_have_parts = std::ranges::all_of(
      keys, [](const std::string& key) { return key.find('=') != std::string::npos; });
  if (keys.size() < 2 || !all_have_parts) return {};
  std::vector<std::vector<Part>> parts;
  for (const std::string& key : keys) parts.push_back(parts_of(key));
  std::set<std::string> shared;
  for (const Part& part : parts.front()) shared.insert(part.text);
  for (const auto& of_key : parts) {
    std::erase_if(shared, [&](const std::string& text) {
      return std::ranges::count(of_key, text, &Part::text) == 0;
    });
  }
  if (shared.empty()) return {};
  FoldedKeys all{{}, without_values(parts.front(), shared)};
  for (const auto& of_key : parts) all.keys.push_back(folded(of_key, shared));
  return all;
}

}  // namespace moegate
