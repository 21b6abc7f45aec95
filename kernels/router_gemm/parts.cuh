// SPDX-License-Identifier: Apache-2.0
// In what order mma_cluster adds up a logit: K is cut into groups of 32 and these into 32 parts, by
// H alone. A part is one chain of mma.m16n8k16 from zero, and the parts are added in fp32, the
// first one first. Rows of operand a are experts, those of b tokens. Chains are short, because
// tensor cores cut what they add instead of rounding it.
//
// A group is two steps of 16. Lane 4g + t has its elements 8t to 8t + 7 of a row, 16 bytes, of
// which the first step takes four and the second the others. So the fragments of x are plain loads
// of 16 bytes. Those of w are packed when a model is loaded, whole lines of them for a warp: in the
// order of memory two rows' words would have to be moved between a load and its product.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {

constexpr int kParts = 32, kGroup = 32;
constexpr int kTileExperts = 16, kTileTokens = 8;  // of mma.m16n8k16

MOEGATE_HD inline int groups_of(const RouterGemmShape& shape) {
  return (shape.hidden + kGroup - 1) / kGroup;
}
/// The group with which a part begins; of kParts: behind the last.
MOEGATE_HD inline int first_group(int groups, int part) {
  return part * groups / kParts;
}

/// What a lane has of a group of a tile of experts: operand a of both steps, rows g and g + 8.
struct GroupOfExperts {
  uint4 first, second;
};
constexpr int kStepBytes = 32 * 16, kGroupBytes = 2 * kStepBytes;  // of packed weights

MOEGATE_HD inline int expert_tiles(const RouterGemmShape& shape) {
  return (shape.experts + kTileExperts - 1) / kTileExperts;
}

/// Packs w, for prepare(): [tiles of experts, groups, steps, lanes] of 16 bytes. What is missing of
/// the last tile and of the last group is zeros.
void pack_weights(RouterGemm& problem, const Launch& where);

/// Everything that a kernel with packed weights needs.
struct PackedArgs {
  RouterGemmArgs args;
  const uint8_t* w;  // packed
};
PackedArgs packed_args(RouterGemm& problem);

/// sums += the products of a group. Lane 4g + t has of experts g (sums 0, 1) and g + 8 (2, 3) the
/// tokens 2t and 2t + 1.
__device__ inline void multiply_group(float (&sums)[4], const GroupOfExperts& w, const uint4& x) {
  const uint32_t first[4] = {w.first.x, w.first.y, w.first.z, w.first.w};
  const uint32_t second[4] = {w.second.x, w.second.y, w.second.z, w.second.w};
  cuda::multiply(sums, first, x.x, x.y);
  cuda::multiply(sums, second, x.z, x.w);
}

}  // namespace moegate::router_gemm
