// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace moegate {

std::string other_question(const Side& base, const Side& head) {
  if (!base.asked_alike || !head.asked_alike) return "";
  for (const SeedError& h : head.seeds) {
    const auto b = std::ranges::find(base.seeds, h.seed, &SeedError::seed);
    if (b == base.seeds.end()) continue;
    std::string what = other_question(*b, h);
    if (!what.empty()) return what;
  }
  return "";
}

std::vector<std::string> changed_operators(
    const std::map<CaseId, std::string, CaseIdLess>& other_questions) {
  std::map<std::pair<std::string, std::string>, int> rows;
  for (const auto& [id, what] : other_questions) {
    ++rows[{id.key.substr(0, id.key.find('/')), what}];
  }
  std::vector<std::string> told;
  for (const auto& [of, count] : rows) {
    told.push_back(fmt::format("operator {} has other {} than the base's: {} not comparable",
                               of.first, of.second,
                               count == 1 ? "1 row is" : fmt::format("{} rows are", count)));
  }
  return told;
}

}  // namespace moegate
