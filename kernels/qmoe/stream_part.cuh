// SPDX-License-Identifier: Apache-2.0
// A warp's share of a tile in stream_imma: its codes on their way through registers, and their
// product with the digits of x.
#pragma once

#include "kernels/cuda/streaming.cuh"
#include "kernels/qmoe/stream_digits.cuh"
#include "kernels/qmoe/stream_imma.cuh"
#include "kernels/qmoe/stream_sums.cuh"

namespace moegate::qmoe {

using namespace cuda;

/// What a lane reads of a part of at most `Steps` steps: codes, and scale factors where they come
/// per block.
template <int Block, int Steps>
struct Part {
  static constexpr int kPairs = Block == 0 ? 0 : Block == 32 ? 2 : 1;  // of scale factors, per step
  static constexpr int kStepBytes = kCodeBytes + 32 * kPairs;
  uint4 codes[Steps];
  uint32_t scales[Steps][kPairs ? kPairs : 1];
  uint32_t scale, bias;  // of the tile's columns, per channel

  __device__ void load(const uint8_t* tile, int first_step, int steps, int lane) {
#pragma unroll
    for (int s = 0; s < Steps; ++s)
      if (s < steps) load_step(tile, first_step, s, lane);
  }
  /// `tile` is its start. Scale and bias come with the first step, so that nobody waits for them
  /// later: waiting for one load may mean waiting for all.
  __device__ void load_step(const uint8_t* tile, int first_step, int s, int lane) {
    const uint8_t* from = tile + kHeaderBytes + (first_step + s) * kStepBytes;
    codes[s] = load_streaming(from + lane * 16);
    const auto* pairs = reinterpret_cast<const uint32_t*>(from + kCodeBytes) + lane / 4 * kPairs;
    for (int i = 0; i < kPairs; ++i) scales[s][i] = __ldg(pairs + i);
    if (s > 0) return;
    const auto* columns = reinterpret_cast<const uint32_t*>(tile) + lane / 4;
    scale = __ldg(columns);
    bias = __ldg(columns + kTileColumns / 2);
  }
};

/// Both digits' sums of a stretch as one number. Sums of a block of scale factors come on top of
/// kIntegerMagic, which makes them floats without a conversion: they stay below 2^22.
constexpr int kIntegerMagic = 0x4b400000;
__device__ inline float joined(int high, int low) {
  constexpr float kMagic = 12582912;
  return fmaf(__int_as_float(high) - kMagic, 256, __int_as_float(low) - kMagic);
}

/// Product of a part with the rows; every register of the part is loaded again from `next` as soon
/// as it was used. `x`: the lane's digits.
template <class T, int Block, int Steps>
__device__ Sums multiply_part(Part<Block, Steps>& part, const uint8_t* x, int steps,
                              const uint8_t* next, int first_step, int lane) {
  Sums sums;
  Accumulator chains[2] = {};
  constexpr Accumulator kFrom = {{kIntegerMagic, kIntegerMagic, kIntegerMagic, kIntegerMagic}};
  const auto add_scaled = [&](const Accumulator& a, uint32_t pair) {
    const float2 scale = T::widen(pair);
    sums.even += joined(a.c[0], a.c[1]) * scale.x;
    sums.odd += joined(a.c[2], a.c[3]) * scale.y;
  };
#pragma unroll
  for (int s = 0; s < Steps; ++s) {
    if (s >= steps) break;
    const uint4 codes = part.codes[s];
    const uint4 b = *reinterpret_cast<const uint4*>(x + s * kStepK);
    if constexpr (Block == 0) {
      chains[0] = multiply(codes.x, codes.y, b.x, b.y, chains[0]);
      chains[1] = multiply(codes.z, codes.w, b.z, b.w, chains[1]);
    } else {
      chains[0] = multiply(codes.x, codes.y, b.x, b.y, kFrom);
      chains[1] = multiply(codes.z, codes.w, b.z, b.w, Block == 32 ? kFrom : chains[0]);
      if (Block == 32) add_scaled(chains[0], part.scales[s][0]);
      add_scaled(chains[1], part.scales[s][Block == 32]);
    }
    if (next) part.load_step(next, first_step, s, lane);
  }
  if constexpr (Block == 0) {
    const auto total = [&](int i) { return static_cast<float>(chains[0].c[i] + chains[1].c[i]); };
    sums.even = fmaf(total(0), 256, total(1));
    sums.odd = fmaf(total(2), 256, total(3));
  }
  return sums;
}

}  // namespace moegate::qmoe
