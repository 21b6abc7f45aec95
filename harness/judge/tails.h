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

/// Unadjusted p of slow processes below which a row that its level would pass stays open: what is
/// open at the screen and at the first look is measured on.
constexpr double kDoubtOnTheWay = 0.15, kLastDoubt = 0.05;

/// Judges the tails of a family that judge_pairs() judged, by two tests that are adjusted by Holm:
/// - The plain mean of all launches, by the test of the level.
/// - The share of slow processes, by Fisher's exact test. Slow is a process above base's median by
///   twice fail_at, and by four of base's robust standard deviations.
/// A row that one of them finds slower is regressed. A row that passes its level becomes
/// inconclusive while one of them is in doubt: p < 0.05 for the mean, `doubt` for the processes.
void judge_tails(std::span<const PairedQuestion> family, const Limits& limits, double doubt,
                 std::vector<Judgement>& judged);

}  // namespace moegate
