// SPDX-License-Identifier: Apache-2.0
// Stages of weights times an octet of rows by mma.sync, and the sets in which the sums of a tile's
// stages meet. A warp multiplies a whole stage and waits for no other warp but before a set that it
// needs is free.
#pragma once

#include "kernels/fused_moe/one_launch/shared.cuh"
#include "kernels/moe_gemm/gather/fragments.cuh"

namespace moegate::fused_moe::one_launch {

/// What a lane needs to know of an octet's rows: column lane / 4 of operand b, and the scale
/// factors of columns lane % 4 * 2 and the next. Behind the octet's last row it is that again.
struct Columns {
  const uint8_t* row;
  const float *even, *odd;

  /// `source`: of the sorted rows, where each lies in shared memory. K: `k`.
  __device__ Columns(const Memory& m, const int* source, int octet, int k) {
    const Octets& octets = m.shared.octets;
    const int first = octets.first[octet], last = octets.first[octet + 1] - 1;
    const int lane = threadIdx.x % 32, groups = k / kMoeGroup;
    const auto source_of = [&](int column) { return source[min(first + column, last)]; };
    row = m.rows + source_of(lane / 4) * (k + kRowGap);
    even = m.row_scales + source_of(lane % 4 * 2) * groups;
    odd = m.row_scales + source_of(lane % 4 * 2 + 1) * groups;
  }
};

/// Scale factors of a tile's low and high rows, by groups of K.
struct WeightScales {
  const float *low, *high;
};

__device__ inline uint4 load_piece(const uint8_t* from) {
  return *reinterpret_cast<const uint4*>(from);
}

/// sums += 64 of K, of which a lane has the same 16 of rows lane / 4 (low), 8 more (high) and
/// column lane / 4: another order of K than in memory, but the same in both operands.
__device__ inline void multiply_pieces(const uint4& low, const uint4& high, const uint4& column,
                                       float (&sums)[4]) {
  namespace gather = moe_gemm::gather;
  const uint32_t lows[] = {low.x, low.y, low.z, low.w}, highs[] = {high.x, high.y, high.z, high.w};
  const uint32_t columns[] = {column.x, column.y, column.z, column.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t a[4], b[2];
    gather::widen(lows[i], a[0], a[2]);
    gather::widen(highs[i], a[1], a[3]);
    gather::widen(columns[i], b[0], b[1]);
    gather::multiply<DType::e4m3>(sums, a, b);
  }
}

/// sums = a stage's products, scaled: of weight rows lane / 4 (elements 0, 1) and 8 more (2, 3) and
/// the columns of Columns. Behind K, where weights are zeros, the last group's rows and factors are
/// read again.
__device__ inline void multiply_stage(const Memory& m, int stage, const Columns& columns,
                                      const WeightScales& scales, int first_group, int groups,
                                      float (&sums)[4]) {
  const int lane = threadIdx.x % 32, row = lane / 4;
  const uint8_t* weights = m.stages + stage * kStageBytes + row * kMoeGroup;
  for (float& sum : sums) sum = 0;
#pragma unroll
  for (int g = 0; g < kStageGroups; ++g) {
    const int group = min(first_group + g, groups - 1);
    float products[2][4] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = lane % 4 * 2 + i;
      const uint8_t* low = weights + g * kGroupBytes + (piece ^ row) * 16;  // 128-byte swizzle
      multiply_pieces(load_piece(low), load_piece(low + kHalfBytes),
                      load_piece(columns.row + group * kMoeGroup + piece * 16), products[i]);
    }
    const float even = columns.even[group], odd = columns.odd[group];
    const float low = scales.low[group], high = scales.high[group];
    sums[0] += (products[0][0] + products[1][0]) * (even * low);
    sums[1] += (products[0][1] + products[1][1]) * (odd * low);
    sums[2] += (products[0][2] + products[1][2]) * (even * high);
    sums[3] += (products[0][3] + products[1][3]) * (odd * high);
  }
}

/// Adds one to a counter in shared memory; what was written before an arrival is there for whoever
/// arrives later. Returns the arrivals before.
__device__ inline int count_arrival(int* counter) {
  int before;
  asm volatile("atom.acq_rel.cta.shared::cta.add.s32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(shared_address(counter))
               : "memory");
  return before;
}

/// Likewise of what was written or read before the store, and is done after the load that sees it.
__device__ inline int load_acquired(const int* from) {
  int value;
  asm volatile("ld.acquire.cta.shared::cta.s32 %0, [%1];"
               : "=r"(value)
               : "r"(shared_address(from))
               : "memory");
  return value;
}
__device__ inline void store_released(int* to, int value) {
  asm volatile("st.release.cta.shared::cta.s32 [%0], %1;" ::"r"(shared_address(to)), "r"(value)
               : "memory");
}

/// A set of partial sums, [line][chunk of K][16 rows of weights]: those of a panel or a strip.
/// Sets are used in turn.
class Parts {
 public:
  __device__ Parts(const Memory& m, const StageOf& of, int floats, int chunks)
      : memory_(m), set_(of.set), uses_(of.use), chunks_(chunks), sums_(m.parts + set_ * floats) {}

  /// Of a stage whose columns lane % 4 * 2 and the next have these lines; negative: nobody's.
  /// Returns whether the stage is the last of `stages` to come, for the whole warp, which is then
  /// to add the lines up and to leave the set.
  __device__ bool put(const float (&sums)[4], int even, int odd, int chunk, int stages) const {
    // By a counter: a barrier's parity cannot tell warps apart that wait for different uses.
    while (load_acquired(&memory_.shared.left[set_]) < uses_) {
    }
    const int lane = threadIdx.x % 32, row = lane / 4;
    if (even >= 0) {
      line(even)[chunk * kTileRows + row] = sums[0];
      line(even)[chunk * kTileRows + row + kOctet] = sums[2];
    }
    if (odd >= 0) {
      line(odd)[chunk * kTileRows + row] = sums[1];
      line(odd)[chunk * kTileRows + row + kOctet] = sums[3];
    }
    __syncwarp();
    int before = 0;
    if (lane == 0) before = count_arrival(&memory_.shared.arrived[set_]);
    before = __shfl_sync(~0u, before, 0);
    __syncwarp();
    return before == stages - 1;
  }
  __device__ float* line(int i) const { return sums_ + i * chunks_ * kTileRows; }
  __device__ int chunks() const { return chunks_; }
  __device__ void leave() const {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    memory_.shared.arrived[set_] = 0;
    store_released(&memory_.shared.left[set_], uses_ + 1);
  }

 private:
  const Memory& memory_;
  const int set_, uses_, chunks_;
  float* const sums_;
};

}  // namespace moegate::fused_moe::one_launch
