// SPDX-License-Identifier: Apache-2.0
// What the host variants share: the parts of a layer beside its products. Those that say so share
// the work among the threads of a parallel region and end with a barrier.
#pragma once

#include "kernels/qmoe/host/dot.h"
#include "kernels/qmoe_layer/steps.h"

namespace moegate::qmoe_layer {

/// The experts of all tokens, and what their rows count. Of a parallel region.
void select_experts(const QmoeLayerArgs& args, const Buffers& buffers);
/// Their rows, sorted.
void sort_rows(const QmoeLayerArgs& args, const Buffers& buffers);
/// Of a parallel region.
void sum_rows(const WeightedSumArgs& args);

}  // namespace moegate::qmoe_layer
