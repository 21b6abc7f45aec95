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
  uint8_t* stages;     // [stages][half][group][8 rows][128], with the 128-byte swizzle
  uint8_t* rows;       // of x [T] or q [R], kRowGap between them
  float* row_scales;   // [T, H/128] or [R, I/128]
  float* up_scales;    // [up_blocks][gates, ups][H/128]
  float* down_scales;  // [octets][down_blocks][I/128]
  float* parts;        // sets of partial sums
  Shared& shared;

  __device__ Memory(uint8_t* raw, const Plan& plan)
      : stages(raw),
        rows(stages + plan.stages * kStageBytes),
        row_scales(reinterpret_cast<float*>(rows + plan.row_bytes)),
        up_scales(row_scales + plan.row_scales),
        down_scales(up_scales + plan.up_scales),
        parts(down_scales + plan.down_scales),
        shared(*reinterpret_cast<Shared*>(parts + plan.parts)) {}
};

/// The weights of all experts, in boxes of a stage; down's also in boxes of half a one.
struct Maps {
  const CUtensorMap *up, *down, *down_half;
};

/// One thread starts the copy of a stage of gate-up: kStageGroups groups from `group` on of eight
/// rows of gates, from `column` on, and of the same rows of ups.
__device__ inline void copy_up_stage(uint8_t* to, const CUtensorMap* map, int expert, int column,
                                     int group, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5, %6}], [%7];" ::"r"(shared_address(to)),
      "l"(map), "r"(0), "r"(column), "r"(group), "r"(0), "r"(expert), "r"(shared_address(barrier))
      : "memory");
}

/// And of down: of as many units of eight rows as the map has in a box, from `unit` of all experts'
/// on.
__device__ inline void copy_down_stage(uint8_t* to, const CUtensorMap* map, int unit, int group,
                                       uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5}], [%6];" ::"r"(shared_address(to)),
      "l"(map), "r"(0), "r"(0), "r"(group), "r"(unit), "r"(shared_address(barrier))
      : "memory");
}

}  // namespace moegate::fused_moe::one_launch
