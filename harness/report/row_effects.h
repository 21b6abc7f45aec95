// SPDX-License-Identifier: Apache-2.0
// How the rows of one stored run differ from another's in time, and which of them do not: what was judged of
// the two, or would be.
#pragma once

#include <map>

#include "harness/judge/gate.h"
#include "harness/store/store.h"

namespace moegate {

using Effects = std::map<CaseId, Effect, CaseIdLess>;

/// Of rows that both sides have, and no others, under the same names. As the store has them from a verdict of
/// these two runs (ab's, whose rounds are paired, before compare's); else as compare would judge them, where
/// equal is what no replay would look at again: so that no row depends on which others are asked about. A row
/// whose latency is not judged has the effect of its levels, 0 where a side has none.
Effects row_effects(Store& store, const RunInfo& base_run, const RunInfo& head_run, Sides base,
                    Sides head);

}  // namespace moegate
