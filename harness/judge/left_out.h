// SPDX-License-Identifier: Apache-2.0
// What a campaign had no time for. Pure.
#pragma once

#include "harness/judge/gate.h"

namespace moegate {

/// Says what becomes of the rows in replayed.left_out, lists them in result.left_out, and says how much
/// more time would have decided them. The counts are not updated.
/// - Measured, but not replayed: open, neither shown slower nor shown equal; but slower where the
///   stored numbers say so by more than twice what a row must see at least.
/// - Not measured, though the base has it: missing, because a night that looked at less than it should
///   is no pass. Identical where is_known_by_program().
/// - Not measured, and nobody has it: nothing where a candidate has just begun or has grown, because a
///   later night will come to it; missing where the candidate is stalled.
void leave_open(GateResult& result, const Sides& head,
                const std::map<std::string, Expectation>& expected, const Replayed& replayed,
                const Limits& limits);

/// Whether a row that was not measured launches what its base did. The program is the same, and a row
/// of the same variant was measured that launched what its own base did, under the same hash as this
/// row's base. A hash that differs from case to case, as on a GPU, therefore shows nothing.
bool is_known_by_program(const CaseId& id, const Sides& head, const Expectation& expected);

}  // namespace moegate
