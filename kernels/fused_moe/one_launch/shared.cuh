// SPDX-License-Identifier: Apache-2.0
// What the threads of a block share: where it lies, and the copies and loads that go there.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/fused_moe/one_launch/plan.h"

namespace moegate::fused_moe::one_launch {

using namespace cuda;

struct Work {
  FusedMoeArgs args;
  float* activations;  // [R, I]
  Plan plan;
};
static_assert(std::has_unique_object_representations_v<Work>, "a row's identity");

/// A block's shared memory, from an address that is a multiple of 1024.
struct Memory {
  uint8_t* stages;      // [stages][half][group][8 rows][128], with the 128-byte swizzle
  float* stage_scales;  // [stages][half][group]
  uint8_t* rows;        // of x [T] or q [R], kRowGap between them
  float* row_scales;    // [T, H/128] or [R, I/128]
  float* parts;         // sets of partial sums
  Shared& shared;

  __device__ Memory(uint8_t* raw, const Plan& plan)
      : stages(raw),
        stage_scales(reinterpret_cast<float*>(stages + plan.stages * kStageBytes)),
        rows(reinterpret_cast<uint8_t*>(stage_scales + plan.stages * kStageScales)),
        row_scales(reinterpret_cast<float*>(rows + plan.row_bytes)),
        parts(row_scales + plan.row_scales),
        shared(*reinterpret_cast<Shared*>(parts + (plan.part_floats << plan.log_parts))) {}
};

/// One thread starts the copy of kStageGroups groups of eight rows of weights, from (row, group)
/// on.
__device__ inline void copy_half(uint8_t* to, const CUtensorMap* map, int row, int group,
                                 uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4}], [%5];" ::"r"(shared_address(to)),
      "l"(map), "r"(0), "r"(row), "r"(group), "r"(shared_address(barrier))
      : "memory");
}

/// One thread starts the copy of so many bytes, a multiple of 16.
__device__ inline void copy_bytes(uint8_t* to, const uint8_t* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// Asks L2 for what a load will want.
__device__ inline void prefetch_to_l2(const void* what) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(what));
}

}  // namespace moegate::fused_moe::one_launch
