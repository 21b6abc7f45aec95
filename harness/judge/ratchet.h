// SPDX-License-Identifier: Apache-2.0
// This file finds outputs that got worse: less precise, with a larger error, or no longer
// deterministic.
#pragma once

#include <optional>
#include <string>

#include "harness/judge/evidence.h"
#include "harness/values/rounding.h"

namespace moegate {

// Whether outputs lost precision, by what their own rounding does not explain (values/rounding.h).
// These statistics are the kernel's, not the seed's, so that other inputs and other GPUs compare.

/// Why head is less precise than base, in one sentence which says what structure the error
/// has; empty: it is not, or one of them is not graded. Less precise is, of the statistics
/// of BeyondRounding:
///
/// | statistic | above | and times the base's |
/// | --- | --- | --- |
/// | excess | 0.1, of few elements excess_of_few() | 1.25 |
/// | misrounded | 0.5 % | 1.5 |
/// | of the worst row, column | 3 % | 1.5 |
/// | scales of rows, columns | 1e-4 (and 5 % of the base's error beyond rounding, the largest 25 %)
/// | 2 |
///
/// Below the first nothing matters, nor below what chance may add (Tolerance::by_chance); the
/// second is larger where few elements are graded. Over seeds the statistics scatter by less than
/// the second (precision_test.cc, over the operators' host variants). NaN is worse than anything.
std::string less_precise(const BeyondRounding& base, const BeyondRounding& head);

/// "excess error 0.9 -> 0.02": what became better by as much; empty: nothing, or not known.
std::string more_precise(const BeyondRounding& base, const BeyondRounding& head);

/// Mean over the seeds that both sides have of log2(error of head / error of base): +1 is twice the
/// error, 0 for bit-identical outputs. Nothing when they share no seed.
std::optional<double> accuracy_change_bits(const Side& base, const Side& head);

/// Whether both sides are known to write the same bits, in every launch and for every seed.
bool bit_identical(const Side& base, const Side& head);

/// Whether two sides that each write the same bits in every launch write other ones for a seed that
/// both have.
bool outputs_differ(const Side& base, const Side& head);

/// Why head's outputs are worse than base's, in one sentence; empty when they are not. Worse is:
/// - no longer deterministic
/// - no longer the same for a token in every batch (worker/batch_invariance.h)
/// - less precise (ratchet.h), over the seeds that both sides have; without common seeds, over each
///   side's own
/// - the worst row's error, over common seeds, is more than twice as large
/// Where a side is an older program's, which knows no precision, in its place:
/// - the error grew by more than 0.5 bit on average and by more than 0.25 bit on at least 80 % of
///   the seeds that both sides have
/// - the scale bias, over those seeds, moved further from 0 by more than 2e-3, or by more
///   than 5e-4 where the base's is below 1e-4
/// - without common seeds (a baseline file states one error): the error grew by more than 2 bits
///   and by more than 1e-6
/// NaN is worse than anything.
///
/// A run knows no ceilings, so what is too small to matter is absolute: errors below 1e-6 on both
/// sides, of a row below 3e-6, are the rounding of fp32 in another order. That is under a quarter
/// of the tightest ceiling of any operator.
std::string worse_output(const Side& base, const Side& head);

/// How head's outputs became more precise, in a few words; empty: they did not.
std::string better_output(const Side& base, const Side& head);

/// Of sides without common seeds, one of which knows no precision: why the same inputs should be
/// compared, in one sentence. The error grew by more than half a bit, which other inputs can do,
/// too. Empty where it did not.
std::string maybe_worse_output(const Side& base, const Side& head);

}  // namespace moegate
