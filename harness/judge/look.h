// SPDX-License-Identifier: Apache-2.0
// This file puts a row of the run beside what it is judged against, and says whether both sides'
// operators asked the same. Where they did not, neither times nor errors compare.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/evidence.h"
#include "harness/judge/gate.h"

namespace moegate {

/// In what the questions of two sides of a row differ, in words ("inputs, cost"), over the seeds
/// that both have; empty where in nothing, or it is not known: of an older program, of a baseline
/// file, of inputs that differ from process to process of one side.
std::string other_question(const Side& base, const Side& head);

/// The same with who asks: "its operator has other cost". What a recording of routing holds is in
/// the inputs of the rows that name it; a row alone does not show which of the two changed: "its
/// recording (routing=replay:ids/) or operator has other inputs".
std::string asks_otherwise(const std::string& key, const std::string& what);

/// A sentence for each operator or recording and difference of these rows, for
/// GateResult::changed. Where a row without a recording differs, too, it is the operator.
std::vector<std::string> changed_operators(
    const std::map<CaseId, std::string, CaseIdLess>& other_questions);

constexpr const char* kIdentical = "the same machine code, launched alike";

struct Look {
  const Side* base;  // measured; null: there is none
  const Side& head;
  const std::string& against;
  const Setting& setting;
  const bool believes_ceilings;
  const bool trusts_code;  // false, too, where the same code was judged all the same
  std::string worse;       // how its outputs are worse than the base's; empty: they are not
  std::string other = {};  // asks_otherwise() than the base's; empty: in nothing

  bool comparable() const { return base && head.measured() && head.timer == base->timer; }
  /// Verified beside a base, and no process had a quiet launch: its code and its outputs are known.
  bool silent() const { return base && head.never_quiet(); }
  bool identical() const { return trusts_code && same_code(*base, head); }
  bool are_yardsticks() const {
    return base->judged == Judged::is_yardstick && head.judged == Judged::is_yardstick;
  }
  bool by_time() const { return compared(*base, head) == Quantity::time; }
  /// Most of its processes were, on a host two at least, and none of the base's, which has the same
  /// ceilings. The same code as a baseline's has passed before.
  bool impossible() const {
    const bool is_new = !base || (base->impossible == 0 && !same_code(*base, head));
    const bool most =
        2 * head.impossible > head.level.n && head.impossible >= (setting.host ? 2 : 1);
    return believes_ceilings && most && is_new;
  }
  bool warm() const {
    return setting.paired && head.warm > 0 && base->warm == 0 && !same_code(*base, head);
  }
  bool disturbed() const { return head.disturbed || base->disturbed; }
  /// Whether the row's latency is a question; that of a row with worse outputs is one too.
  bool judged() const {
    return comparable() && other.empty() && !identical() && !disturbed() && !impossible() &&
           !warm();
  }
};

/// The row with all that its two sides say but latency.
CaseVerdict look_at(const CaseId& id, const Look& look);

/// Rows whose outputs are others than the base's, and no worse: more precise, or changed in their
/// last bits.
class OtherOutputs {
 public:
  void add(const CaseId& id, const Look& look);
  /// Adds a sentence for each kind that there is.
  void say(std::vector<std::string>& notes) const;

 private:
  int more_precise_ = 0, changed_ = 0;
  std::string first_;  // that is more precise, and how
};

}  // namespace moegate
