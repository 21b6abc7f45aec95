// SPDX-License-Identifier: Apache-2.0
// Activations as int8: x = scale * (256 * high + low), two digits of -128 to 127, the scale that of
// a row's part of K. They lie in shared memory as the tensor cores' operand B wants them.
#pragma once

#include <cstdint>

#include "kernels/qmoe/stream_layout.h"

namespace moegate::qmoe {

/// Digits of all rows of x in shared memory, [row][digit][K] bytes in the order of operand B: of
/// each step of 64 k, a lane's 16 bytes are its 8 k of the first half and its 8 k of the second.
struct Digits {
  uint8_t* bytes;
  float* scales;  // [row][parts], of 16 * x
  int k, parts;

  __device__ uint8_t* plane(int row, int digit) const {
    return bytes + (row * 2 + digit) * plane_bytes(k);
  }
  /// An odd number of half bank rows: lanes that load from two planes meet no bank twice.
  static __host__ __device__ int plane_bytes(int k) { return k | kStepK; }
  __device__ float& scale(int row, int part) const { return scales[row * parts + part]; }
};

/// Eight values of x as their digits, high and low.
template <class T>
__device__ void to_digits(uint4 x, float inverse, uint2& high, uint2& low) {
  constexpr float kMagic = 12582912;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
  uint32_t whole[4];  // two 16-bit integers each
  for (int i = 0; i < 4; ++i) {
    const float2 v = T::widen(pairs[i]);
    whole[i] = __byte_perm(__float_as_uint(fmaf(v.x, inverse, kMagic)),
                           __float_as_uint(fmaf(v.y, inverse, kMagic)), 0x5410);
  }
  low =
      make_uint2(__byte_perm(whole[0], whole[1], 0x6420), __byte_perm(whole[2], whole[3], 0x6420));
  for (uint32_t& w : whole) w = __vadd2(w, 0x00800080);  // the low digit is signed
  high =
      make_uint2(__byte_perm(whole[0], whole[1], 0x7531), __byte_perm(whole[2], whole[3], 0x7531));
}

__device__ inline float largest(float a, float2 b) {
  return fmaxf(a, fmaxf(fabsf(b.x), fabsf(b.y)));
}

/// One row's part of K, of at most `Steps` steps, by one warp.
template <class T, int Steps>
struct RowPart {
  static constexpr int kChunks = (Steps * 8 + 31) / 32;  // of 8 values, per lane
  uint4 chunks[kChunks];

  /// `x`: the row's part.
  __device__ void load(const uint16_t* x, int steps, int lane) {
    for (int i = 0; i < kChunks; ++i) {
      const int chunk = i * 32 + lane;
      chunks[i] = chunk < steps * 8 ? __ldg(reinterpret_cast<const uint4*>(x) + chunk)
                                    : make_uint4(0, 0, 0, 0);
    }
  }
  /// Writes its digits and its scale.
  __device__ void split(const Digits& digits, int row, int part, int step, int steps,
                        int lane) const {
    float most = 0;
    for (const uint4& c : chunks)
      for (const uint32_t pair : {c.x, c.y, c.z, c.w}) most = largest(most, T::widen(pair));
    most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));  // not negative
    constexpr float kMost = 32512;  // 127 * 256: the largest that two digits hold on both sides
    const float inverse = most > 0 ? kMost / most : 0;
    if (lane == 0) digits.scale(row, part) = most / (16 * kMost);
    for (int i = 0; i < kChunks; ++i) {
      const int chunk = i * 32 + lane;
      if (chunk >= steps * 8) break;
      uint2 high, low;
      to_digits<T>(chunks[i], inverse, high, low);
      // Step, then the lane of operand B that wants it, then the half of the step.
      const int to = (step + chunk / 8) * kStepK + chunk % 4 * 16 + chunk / 4 % 2 * 8;
      *reinterpret_cast<uint2*>(digits.plane(row, 0) + to) = high;
      *reinterpret_cast<uint2*>(digits.plane(row, 1) + to) = low;
    }
  }
};

}  // namespace moegate::qmoe
