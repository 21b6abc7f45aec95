// SPDX-License-Identifier: Apache-2.0
// Whether both sides' operators asked the same of their variants. Where they did not, neither times nor
// errors compare. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/evidence.h"

namespace moegate {

/// In what the questions of two sides of a row differ, in words ("inputs, cost"), over the seeds that
/// both have; empty where in nothing, or it is not known: of an older program, of a baseline file, of
/// inputs that differ from process to process of one side.
std::string other_question(const Side& base, const Side& head);

/// A sentence for each operator and difference of these rows, for GateResult::changed.
std::vector<std::string> changed_operators(
    const std::map<CaseId, std::string, CaseIdLess>& other_questions);

}  // namespace moegate
