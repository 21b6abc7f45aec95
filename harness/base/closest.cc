// SPDX-License-Identifier: Apache-2.0
#include "harness/base/closest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace moegate {
namespace {

constexpr size_t kLongestName = 64;  // bytes: what is longer is no mistyped name

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// One in three characters may be wrong, rounded up.
size_t tolerated(const std::string& typed) {
  return (typed.size() + 2) / 3;
}

}  // namespace

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known) {
  constexpr size_t kShortestStart = 3;
  if (typed.empty() || typed.size() > kLongestName) return "";
  const std::string name = lower_case(typed);
  const std::string* closest = nullptr;
  size_t least = tolerated(typed) + 1;
  for (const std::string& candidate : known) {
    if (candidate.empty() || candidate.size() > kLongestName) continue;
    const std::string other = lower_case(candidate);
    const bool is_start = name.size() >= kShortestStart && other.starts_with(name);
    // Else "x" would be close to "y".
    const size_t distance = edit_distance(name, other);
    const bool is_close = is_start || distance < std::min(name.size(), other.size());
    if (!is_close) continue;
    const size_t rank = is_start ? std::min(distance, tolerated(typed)) : distance;
    if (rank >= least) continue;
    least = rank;
    closest = &candidate;
  }
  return closest ? fmt::format(" (did you mean '{}'?)", *closest) : "";
}

}  // namespace moegate
