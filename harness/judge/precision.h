// SPDX-License-Identifier: Apache-2.0
// Whether outputs lost precision, by what their own rounding does not explain (values/rounding.h).
// These statistics are the kernel's, not the seed's, so that other inputs and other GPUs compare.
#pragma once

#include <span>
#include <string>

#include "harness/values/rounding.h"

namespace moegate {

/// Why head is less precise than base, in one sentence which says what structure the error has; empty:
/// it is not, or one of them is not graded. Less precise is, of the statistics of BeyondRounding:
///
/// | statistic | above | and times the base's |
/// | --- | --- | --- |
/// | excess | 0.1, of few elements excess_of_few() | 1.25 |
/// | misrounded | 0.5 % | 1.5 |
/// | of the worst row, column | 3 % | 1.5 |
/// | scales of rows, columns | 1e-4 (and 5 % of the base's error beyond rounding, the largest 25 %) | 2 |
///
/// Below the first nothing matters, nor below what chance may add (Tolerance::by_chance); the second is larger where few elements are graded. Over seeds the statistics scatter by less than the second
/// (precision_test.cc, over the operators' host variants). NaN is worse than anything.
std::string less_precise(const BeyondRounding& base, const BeyondRounding& head);

/// "excess error 0.9 -> 0.02": what became better by as much; empty: nothing, or not known.
std::string more_precise(const BeyondRounding& base, const BeyondRounding& head);

}  // namespace moegate
