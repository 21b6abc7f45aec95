// SPDX-License-Identifier: Apache-2.0
// Rows of x in token order, which 128 threads gather into stages, 16 bytes a time: of every row of
// a block eight threads bring the 128 bytes that a stage holds.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm {

/// What one thread brings: 16 bytes of every 16th of kRows rows, from row thread / 8 on. Padding
/// keeps what was there: a row of a product depends on no other row of x.
template <int kRows>
class GatheredRows {
 public:
  static constexpr int kThreads = 128, kStep = kThreads / 8;

  /// `id_of(row)`: of a row of the block; R or more: padding.
  template <class F>
  __device__ GatheredRows(const MoeGemmArgs& args, int64_t row_bytes, int thread, F id_of)
      : to_(thread / 8 * kSliceBytes + (thread % 8 ^ thread / 8 % 8) * 16) {
    const auto* x = static_cast<const uint8_t*>(args.x) + thread % 8 * 16;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int id = id_of(thread / 8 + i * kStep);
      there_[i] = id < args.shape.rows();
      from_[i] = x + args.shape.source(id) * row_bytes;
    }
  }
  /// Calls copy(slice, ahead) for all slices of K; start() wants the latter.
  template <class F>
  __device__ void for_slices(int slices, F copy) {
    for (int first = 0; first < slices; first += kAtOnce) {
#pragma unroll
      for (int ahead = 0; ahead < kAtOnce; ++ahead) {
        if (first + ahead == slices) break;
        copy(first + ahead, ahead);
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) from_[i] += kAtOnce * kSliceBytes;
    }
  }
  /// Starts the copies to a stage's rows, with the 128-byte swizzle; zeros where not `inside` of K.
  __device__ void start(uint32_t stage, int ahead, bool inside) const {
    const uint32_t to = stage + to_;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (there_[i])
        cuda::copy_async<16>(to + i * kStep * kSliceBytes, from_[i] + ahead * kSliceBytes, inside);
    }
  }

 private:
  // Slices whose addresses are computed at once. A copy whose address is computed right before it
  // waits until the one before has read its registers: some 100 cycles each.
  static constexpr int kAtOnce = 4, kEach = kRows / kStep;

  const uint8_t* from_[kEach];
  bool there_[kEach];
  uint32_t to_;
};

}  // namespace moegate::moe_gemm
