// SPDX-License-Identifier: Apache-2.0
// Sorting the routed rows by one block, a thread each: its place is how many rows come before it.
#pragma once

#include <climits>

#include "kernels/qmoe_layer/steps.h"

namespace moegate::qmoe_layer {

constexpr int kMostRows = 64;  // as many as the products take; threads of the block, at least

/// What a block knows of row i = t * k + slot, in shared memory.
struct Choices {
  alignas(16) int32_t keys[kMostRows];  // ascend as rows are sorted; INT_MAX: no row
  float weights[kMostRows];

  /// Thread `thread` of all, before others call choose().
  __device__ void leave_out(int rows, int thread) {
    if (thread >= rows && thread < kMostRows) keys[thread] = INT_MAX;
  }
  __device__ void choose(int i, int expert, float weight) {
    keys[i] = expert * kMostRows + i;
    weights[i] = weight;
  }
  /// Behind a barrier: what the other parts of the layer want to know of row i.
  __device__ void place(int i, int topk, const Routed& routed) const {
    const int key = keys[i], first = i / topk * topk;
    int place = 0;
#pragma unroll
    for (int other = 0; other < kMostRows; other += 4) {
      const int4 four = *reinterpret_cast<const int4*>(keys + other);
      place += (four.x < key) + (four.y < key) + (four.z < key) + (four.w < key);
    }
    int rank = 0;  // among the token's
    for (int j = first; j < first + topk; ++j) rank += keys[j] < key;
    routed.row_source[place] = i / topk;
    routed.row_expert[place] = key / kMostRows;
    routed.row_own[i] = i;
    routed.token_rows[first + rank] = place;
    routed.token_weights[first + rank] = weights[i];
  }
};

}  // namespace moegate::qmoe_layer
