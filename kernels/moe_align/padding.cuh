// SPDX-License-Identifier: Apache-2.0
// What the CUDA variants of moe_align write alike.
#pragma once

#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {

__device__ inline int blocks_for(const MoeAlignShape& shape, int rows) {
  return static_cast<int>(static_cast<unsigned>(rows + shape.block - 1) /
                          static_cast<unsigned>(shape.block));
}

/// Fills all of sorted_token_ids with padding, before the rows go in; thread `worker` of `workers`.
__device__ inline void fill_with_padding(const MoeAlignArgs& args, int worker, int workers) {
  const int capacity = args.shape.capacity(), padding = args.shape.rows();
  for (int i = worker; i < capacity; i += workers) args.sorted_token_ids[i] = padding;
}

/// Marks the blocks from `first` on as nobody's, which upstream does though nothing may read them.
__device__ inline void clear_blocks(const MoeAlignArgs& args, int first, int worker, int workers) {
  const int blocks = args.shape.blocks();
  for (int i = first + worker; i < blocks; i += workers) args.expert_ids[i] = -1;
}

}  // namespace moegate::moe_align
