// SPDX-License-Identifier: Apache-2.0
// The product of a tile of bf16: sums are the accumulators of the tensor cores themselves, so that
// nothing stands between the products of a slice and those of the next. The two warpgroups run free
// of each other.
#pragma once

#include "kernels/cuda/wgmma.cuh"
#include "kernels/moe_gemm/wide_tiles/tiles.cuh"

namespace moegate::moe_gemm::wide_tiles {

/// Adds a tile's products to the sums. A stage is left once its products are done, while those of
/// the next are under way.
template <class C>
__device__ void multiply_plain(int slices, const Part<C>& part, Shared<C>& memory, uint32_t shared,
                               Ring& ring, Sums<C>& sums) {
  static_assert(C::kProducts == 1);
  uint64_t* left = nullptr;
  for (int slice = 0; slice < slices; ++slice, ring.advance()) {
    const uint32_t stage = shared + ring.stage * C::kStageBytes;
    wait_barrier(&memory.full[ring.stage], ring.phase);
    fence_for_products();
    start_group<C::kProductColumns, C::kDtype>(
        sums[0], operand(stage + C::kWeightBytes + part.row / 64 * C::kPartRowBytes),
        operand(stage + part.first_product * C::kProductBytes), true);
    if (slice > 0) {
      wait_products<1>();
      __syncwarp();
      leave_stage<C>(left);
    }
    left = &memory.empty[ring.stage];
  }
  wait_products();
  __syncwarp();
  leave_stage<C>(left);
}

}  // namespace moegate::moe_gemm::wide_tiles
