// SPDX-License-Identifier: Apache-2.0
// What may be found of a row, and what it comes to. Of all that is found of a row the first of this
// list decides: its order is the policy, and rules.cc is the only place where a row gets its
// outcome. Pure.
#pragma once

#include <bitset>

#include "harness/judge/verdict.h"

namespace moegate {

/// In the order in which they decide. A row of which nothing is found passes.
enum class Rule {
  waived,             // all of its failures are within active waivers
  nothing_timed,      // nor was any other row of the run: no word about the kernels
  wrong_output,       // verification says so
  broken,             // crashed, timed out, or ended in a way that is not known
  no_latency,         // verified, and not measured any more
  impossible,         // faster than the device's ceilings allow
  fresh,              // there is nothing to compare with
  other_timer,        // another one than the base's
  other_question,     // its operator asks otherwise than the base's
  worse_output,       // than the base's
  as_warm,            // as fast cold as warm, which the base is not
  other_device,       // than the baseline's, nothing was replayed, and the numbers leave it open
  known_identical,    // not measured, and the base's program all the same
  stalled,            // not measured, in no candidate, and the candidate did not grow
  not_measured,       // for want of time, and the base has it
  lacking,            // in the base's suite, not in the head's
  absent,             // in the baseline, not in the run
  crept,              // too far above its anchor, though it passes against its base
  far_slower,         // than any noise, though its ratio compares with none
  left_open,          // not replayed for want of time, or cut short by an interruption
  slow_to_enqueue,    // the host takes longer to launch it
  noisier,            // than the base, in too many processes
  identical_but_off,  // the same machine code, and slower all the same: a replay decides
  identical,          // the same machine code, launched alike
  slower,             // by its latency
  replay_decides,     // its latency passes, and something else in its numbers does not
  faster,             // by its latency
  uncertain,          // neither slower nor shown equal
  not_slower,         // by its latency
  disturbed,          // too few processes had the machine to themselves
  same_yardstick,     // of the same code, where code alone decides nothing
  never_quiet,        // no launch had the machine to itself
  by_own_time,        // its ratio compares with none, and only a replay decides
  same_outputs        // bit by bit; its latency is another question
};
constexpr size_t kRuleCount = static_cast<size_t>(Rule::same_outputs) + 1;

using Found = std::bitset<kRuleCount>;

/// What the first of them says; Outcome::pass for nothing.
Outcome outcome_of(const Found& found);

Rule rule_of(const Judgement& latency);

}  // namespace moegate
