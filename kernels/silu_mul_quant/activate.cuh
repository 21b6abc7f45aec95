// SPDX-License-Identifier: Apache-2.0
// What a thread of fused.cu does, and of its twin that starts early.
#pragma once

#include "kernels/silu_mul_quant/quantise.cuh"

namespace moegate::silu_mul_quant {

__device__ inline void activate(const SiluMulQuantArgs& args) {
  const GroupPlace place(args.shape);
  if (!place.there) return;
  const int inter = args.shape.inter, groups = args.shape.groups();
  const int row = place.index / groups, group = place.index % groups;
  const uint16_t* from =
      args.h + int64_t{row} * 2 * inter + group * kQuantGroup + place.lane * kPerLane;
  const uint4 gates = __ldcs(reinterpret_cast<const uint4*>(from));
  const uint4 ups = __ldcs(reinterpret_cast<const uint4*>(from + inter));
  float a[kPerLane], up[kPerLane];
  widen(gates, a);
  widen(ups, up);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) a[i] = activation(a[i], up[i]);
  quantise(args, place, a);
}

}  // namespace moegate::silu_mul_quant
