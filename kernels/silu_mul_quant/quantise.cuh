// SPDX-License-Identifier: Apache-2.0
// Per-token-group quantisation by half-warps: 16 lanes hold a group of 128 activations, eight each,
// so that a lane reads 16 bytes of bf16 and writes 8 of e4m3.
#pragma once

#include <cuda_fp8.h>

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::silu_mul_quant {

using namespace cuda;

constexpr int kLanes = 16;  // of a group
constexpr int kPerLane = kQuantGroup / kLanes;
constexpr int kThreads = 256;
constexpr int kGroupsPerBlock = kThreads / kLanes;

/// Where the thread's group and its eight columns are.
struct GroupPlace {
  int index;   // of the group among all: row * I/128 + group of the row
  int lane;    // of the group's 16
  bool there;  // false beyond the last group, for all lanes of the half-warp alike

  __device__ explicit GroupPlace(const SiluMulQuantShape& shape)
      : index(blockIdx.x * kGroupsPerBlock + threadIdx.x / kLanes),
        lane(threadIdx.x % kLanes),
        there(index < shape.rows * shape.groups()) {}

  /// Of the thread's first element of q, and of the activations.
  __device__ int64_t element() const { return int64_t{index} * kQuantGroup + lane * kPerLane; }
};

inline int blocks_for(const SiluMulQuantShape& shape) {
  return (shape.rows * shape.groups() + kGroupsPerBlock - 1) / kGroupsPerBlock;
}

__device__ inline float activation(float gate, float up) {
  return __fdividef(gate, 1 + __expf(-gate)) * up;
}

/// The scale factor of a group whose largest value is `amax`.
__device__ inline float scale_of(float amax) {
  return amax * (1 / kLargestCode);
}

/// Two activations over the scale factor, as codes; `low` comes first in memory.
__device__ inline uint32_t quantised(float low, float high, float inverse) {
  const float2 pair = {low * inverse, high * inverse};
  return __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
}

/// The lane's eight codes to `to`, and the group's scale factor to `scale_to`. Called by the 16
/// lanes of a group together; the other half of the warp need not take part.
__device__ inline void quantise(const float (&a)[kPerLane], uint8_t* to, float* scale_to) {
  float amax = kLeastAmax;
#pragma unroll
  for (const float value : a) amax = fmaxf(amax, fabsf(value));
  const unsigned half = 0xffffu << (threadIdx.x & 16);
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2)
    amax = fmaxf(amax, __shfl_xor_sync(half, amax, step));
  const float scale = scale_of(amax), inverse = 1 / scale;
  uint32_t codes[2] = {};
#pragma unroll
  for (int i = 0; i < kPerLane; i += 2)
    codes[i / 4] |= quantised(a[i], a[i + 1], inverse) << (i % 4 * 8);
  *reinterpret_cast<uint2*>(to) = {codes[0], codes[1]};
  if (threadIdx.x % kLanes == 0) *scale_to = scale;
}
/// The same of a group that is there.
__device__ inline void quantise(const SiluMulQuantArgs& args, const GroupPlace& place,
                                const float (&a)[kPerLane]) {
  quantise(a, args.q + place.element(), args.scales + place.index);
}

}  // namespace moegate::silu_mul_quant
