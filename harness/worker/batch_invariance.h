// SPDX-License-Identifier: Apache-2.0
// Batch invariance: a token's output bits depend neither on the number of tokens beside it, nor on
// who they are, nor on its place among them. Engines need it for reproducible answers. No truth is
// needed to ask, and nothing is timed. Knows no Bench.
#pragma once

#include <vector>

#include "harness/kernel/registry.h"
#include "harness/values/result.h"

namespace moegate {

/// Launches a variant on batches of 1 to `most` tokens, also more than the case has, all of which
/// hold some of the same eight tokens: at the first, middle and last place, on both sides of
/// the usual edges of blocks, in other company each time. A token's outputs have to be, bit by bit,
/// those of the smallest batch that it was in. Weights are the case's, and each batch has the
/// configuration that its number of tokens chooses (block = tuned).
///
/// Returns the metric kInvarianceMetric, and where it is not 0 kBrokenPlaceMetric and
/// kBrokenShareMetric of the first token that was seen to differ. Nothing where nothing can be
/// asked: the operator says of no rows that they are a token's (Problem::rows_of), its routing was
/// recorded, or the variant runs one size of batch alone. Throws what a launch throws.
///
/// `c` as it is written, not resolved.
std::vector<Metric> ask_batch_invariance(const Variant& variant, const Case& c, int64_t most,
                                         const Registry& registry, Device& device);

}  // namespace moegate
