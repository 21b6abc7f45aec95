// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/look.h"

#include <fmt/format.h>

#include "harness/judge/ratchet.h"

namespace moegate {

void MorePrecise::add(const CaseId& id, const Look& look) {
  if (!look.comparable() || !look.worse.empty() || !look.other.empty()) return;
  const std::string how = better_output(*look.base, look.head);
  if (!how.empty() && rows_++ == 0) first_ = fmt::format("{} {}: {}", id.key, id.variant, how);
}

void MorePrecise::say(std::vector<std::string>& notes) const {
  if (rows_ == 0) return;
  notes.push_back(fmt::format("outputs of {} are more precise than the base's; {}",
                              rows_ == 1 ? "1 row" : fmt::format("{} rows", rows_), first_));
}

bool expected_by_nobody(const Look& l) {
  return !l.base && l.head.status == Status::unsupported;
}

bool is_judged(const Look& l) {
  return l.comparable() && l.other.empty() && !l.identical() && !l.disturbed() && !l.impossible() &&
         !l.warm();
}

}  // namespace moegate
