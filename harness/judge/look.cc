// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/look.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/base/text.h"
#include "harness/judge/ratchet.h"

namespace moegate {
namespace {

/// Parameters in a case's key that name files of recorded routing, which may be why the inputs are
/// others, and with them the shapes. Empty: none, or what differs is in no file.
std::string recordings_in(const std::string& key, const std::string& what) {
  if (what.find("inputs") == what.npos && what != "tensors") return "";
  static const Pattern recorded =
      compile_pattern("recordings", R"(=(shared:)*(replay|load):|\.npy$)");
  std::vector<std::string> named;
  for (const std::string& part : split_list(key.substr(key.find('/') + 1))) {
    if (recorded.found_in(part)) named.push_back(part);
  }
  return fmt::format("{}", fmt::join(named, ", "));
}

}  // namespace

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

std::string asks_otherwise(const std::string& key, const std::string& what) {
  const std::string recordings = recordings_in(key, what);
  return fmt::format("its {}operator has other {}",
                     recordings.empty() ? "" : fmt::format("recording ({}) or ", recordings), what);
}

std::vector<std::string> changed_operators(
    const std::map<CaseId, std::string, CaseIdLess>& other_questions) {
  std::set<std::string> to_blame;  // operators
  for (const auto& [id, what] : other_questions) {
    if (recordings_in(id.key, what).empty()) to_blame.insert(operator_of(id.key));
  }
  std::map<std::pair<std::string, std::string>, size_t> rows;
  for (const auto& [id, what] : other_questions) {
    std::string who = fmt::format("operator {}", operator_of(id.key));
    if (!to_blame.contains(operator_of(id.key))) {
      who = fmt::format("recording ({}) or {}", recordings_in(id.key, what), who);
    }
    ++rows[{who, what}];
  }
  std::vector<std::string> told;
  for (const auto& [of, count] : rows) {
    told.push_back(fmt::format("{} has other {} than the base's: {} {} not comparable", of.first,
                               of.second, count_of(count, "row"), count == 1 ? "is" : "are"));
  }
  return told;
}

void OtherOutputs::add(const CaseId& id, const Look& look) {
  if (!look.comparable() || !look.worse.empty() || !look.other.empty()) return;
  const std::string how = better_output(*look.base, look.head);
  if (!how.empty() && more_precise_++ == 0) {
    first_ = fmt::format("{} {}: {}", id.key, id.variant, how);
  }
  changed_ += how.empty() && outputs_differ(*look.base, look.head);
}

void OtherOutputs::say(std::vector<std::string>& notes) const {
  if (more_precise_ > 0) {
    notes.push_back(fmt::format("outputs of {} are more precise than the base's; {}",
                                count_of(more_precise_, "row"), first_));
  }
  if (changed_ > 0) {
    notes.push_back(fmt::format("outputs of {} changed in the last bits, {} less accurate",
                                count_of(changed_, "row"),
                                changed_ == 1 ? "and are not" : "none is"));
  }
}

}  // namespace moegate
