// SPDX-License-Identifier: Apache-2.0
// What a campaign had no time for. Pure.
#pragma once

#include "harness/judge/gate.h"

namespace moegate {

/// The cases in `left_out` are open: neither shown slower nor shown equal, and not missing either.
/// Lists them in result.left_out. The counts are not updated.
void leave_open(GateResult& result, const std::set<CaseId, CaseIdLess>& left_out);

}  // namespace moegate
