// SPDX-License-Identifier: Apache-2.0
// What a trimmed mean over launches and a mean over processes hide: a loss in few launches, or in
// few processes. Judged beside them, each as a family of its own with its own alpha. Pure.
#pragma once

#include <span>
#include <vector>

#include "harness/judge/verdict.h"

namespace moegate {

/// One-sided p of Fisher's exact test: that something befalls `head` of `of_head` processes and
/// `base` of `of_base` though it is as likely on both sides. 1 where a side has none.
double more_often(int head, int of_head, int base, int of_base);

/// How little evidence of a lossy tail keeps a row open that its level would pass.
struct TailDoubt {
  double p_slow;  // of slow processes
  bool any;       // one slow process of head's beyond base's is enough

  static TailDoubt screen() { return {0.5, true}; }
  static TailDoubt first_look() { return {0.15, false}; }
  static TailDoubt last_look() { return {0.05, false}; }
};

/// Judges the tails of a family that judge_pairs() judged, by two tests that are adjusted by Holm:
/// - The plain mean of all launches, by the test of the level.
/// - The share of slow processes, by Fisher's exact test. Slow is a process above base's median by
///   twice fail_at, and by four of base's robust standard deviations.
/// A row that one of them finds slower is regressed. A row that passes its level becomes
/// inconclusive while one of them is in doubt: p < 0.05 for the mean, `doubt` for the processes.
void judge_tails(std::span<const PairedQuestion> family, const Limits& limits, TailDoubt doubt,
                 std::vector<Judgement>& judged);

}  // namespace moegate
