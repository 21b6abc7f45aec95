// SPDX-License-Identifier: Apache-2.0
// What the multiplying warpgroups of sparse_rows do: they take the chunks of rows in turn, and in
// that order add the products to the sums in shared memory, times alpha and the scale factors that
// go with it.
#pragma once

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/dense_fc2/sparse_rows/lists.cuh"

namespace moegate::dense_fc2::sparse_rows {

using namespace cuda;

constexpr int kConsumers = kWarpgroups * 128;        // threads
constexpr int kChunkBytes = kChunkRows * kMoeGroup;  // per 128 of K
constexpr int kSums = kChunkRows / 2;                // of a thread's accumulator

/// A block's part of the work, in shared memory.
struct Memory {
  uint8_t* weights;  // [stages, groups of a span, columns, 128], 128-byte swizzle
  uint8_t* rows;     // [stages, groups of a span, kChunkRows, 128], likewise
  float* sums;       // [M + 1, pitch]: the last row is for rows that a chunk lacks
  Chunk* chunks;     // [stages]
  Shared* shared;
  int first_column;

  /// A product reads kMostColumns rows of weights, of which those beyond `columns` are what
  /// follows, the rows at last; nothing comes of them.
  __device__ Memory(uint8_t* raw, const Work& work) {
    const Plan& plan = work.plan;
    const int slabs = plan.stages * plan.span;
    weights = align_shared(raw);
    rows = weights + slabs * plan.columns * kMoeGroup;
    sums = reinterpret_cast<float*>(rows + slabs * kChunkBytes);
    chunks = reinterpret_cast<Chunk*>(sums + (work.args.shape.tokens + 1) * plan.pitch);
    shared = reinterpret_cast<Shared*>(chunks + plan.stages);
    first_column = blockIdx.x * plan.columns;
  }
};

/// By all threads of the block.
__device__ inline void clear_sums(const Work& work, const Memory& memory) {
  auto* sums = reinterpret_cast<float4*>(memory.sums);
  const int vectors = work.args.shape.tokens * work.plan.pitch / 4;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) sums[i] = float4{};
}

template <bool kBlockScales, int kSpan>
class Multiplier {
 public:
  /// What a chunk's products meet, of the thread's four rows.
  struct Product {
    float* sums[4];  // of the thread's first column
    float factors[4];
    float b_scales[2];  // of the thread's two columns
    bool last;          // that needs the weights
    int weights;        // their stage
  };

  __device__ Multiplier(const Work& work, const Memory& memory)
      : plan_(work.plan),
        memory_(memory),
        sums_(memory.sums + column()),
        columns_(work.plan.columns - warp() * 16),
        ring_{work.plan.stages} {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      b_group_[i] = memory.first_column % kMoeGroup + column() + i * 8 >= kMoeGroup;
  }

  /// Adds up the warpgroup's chunks: of kWarpgroups one after the other, its own.
  __device__ void multiply_chunks() {
    Shared& shared = *memory_.shared;
    const int warpgroup = threadIdx.x / 128;
    uint64_t* own_turn = &shared.turns[warpgroup][warp()];
    uint64_t* next_turn = &shared.turns[(warpgroup + 1) % kWarpgroups][warp()];
    if (warpgroup == kWarpgroups - 1) arrive_warp(next_turn);  // the first
    ring_.advance(warpgroup);
    for (uint32_t turn = 0;; turn ^= 1) {
      wait_barrier(&shared.rows_full[ring_.stage], ring_.phase);
      const Chunk& chunk = memory_.chunks[ring_.stage];
      if (chunk.rows == 0) break;
      wait_barrier(&shared.weights_full[chunk.weights], chunk.weights_phase);
      fence_for_products();
      __syncwarp();
      float acc[kSums];
      start(chunk.weights, acc);
      const Product product = read(chunk);
      wait_products();
#pragma unroll
      for (float& x : acc) asm volatile("" : "+f"(x)::"memory");  // not read before the wait
      scale(product, acc);
      wait_barrier(own_turn, turn);
      arrive_warp(&shared.rows_empty[ring_.stage]);  // not earlier: in order
      add(product, acc);
      arrive_warp(next_turn);
      // Warps that had turns before have made their products.
      if (product.last) arrive_warp(&shared.weights_empty[product.weights]);
      ring_.advance(kWarpgroups);
    }
  }

 private:
  __device__ static int warp() {
    return threadIdx.x / 32 % 4;
  }
  /// The first of a thread's two columns of the block's; the other is 8 further on.
  __device__ static int column() {
    return warp() * 16 + threadIdx.x % 32 / 4;
  }

  /// acc = the products of the chunk that was waited for, under way.
  __device__ void start(int weights, float (&acc)[kSums]) const {
    const uint32_t slab_bytes = plan_.columns * kMoeGroup;
    const uint32_t a = operand(shared_address(memory_.weights) + weights * kSpan * slab_bytes);
    const uint32_t b = operand(shared_address(memory_.rows) + ring_.stage * kSpan * kChunkBytes);
    begin_products();
#pragma unroll
    for (int g = 0; g < kSpan; ++g) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        multiply<kChunkRows>(acc, a + g * (slab_bytes >> 4) + 2 * k,
                             b + g * (kChunkBytes >> 4) + 2 * k, g > 0 || k > 0);
      }
    }
    commit_products();
  }

  __device__ Product read(const Chunk& chunk) const {
    Product product;
    const int first = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = first + i * 4;
      const int2 tokens = *reinterpret_cast<const int2*>(&chunk.tokens[row]);
      float2 factors = *reinterpret_cast<const float2*>(&chunk.alphas[row]);
      if constexpr (kBlockScales) {
        const float2 scales = *reinterpret_cast<const float2*>(&chunk.a_scales[row]);
        factors.x *= scales.x, factors.y *= scales.y;
      }
      product.sums[i] = sums_ + tokens.x * plan_.pitch;
      product.sums[i + 1] = sums_ + tokens.y * plan_.pitch;
      product.factors[i] = factors.x, product.factors[i + 1] = factors.y;
    }
    if constexpr (kBlockScales) {
#pragma unroll
      for (int i = 0; i < 2; ++i) product.b_scales[i] = chunk.b_scales[b_group_[i]];
    }
    product.last = chunk.last != 0;
    product.weights = chunk.weights;
    return product;
  }

  __device__ static void scale(const Product& product, float (&acc)[kSums]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        float factor = product.factors[i];
        if constexpr (kBlockScales) factor *= product.b_scales[column];
        acc[i / 2 * 4 + i % 2 + column * 2] *= factor;
      }
    }
  }

  /// By one warp of those that share columns at a time, and so without what can be done outside a
  /// turn, or a branch. Loads come before all stores, which they would otherwise wait for.
  __device__ void add(const Product& product, const float (&acc)[kSums]) const {
    float sums[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (columns_ > 0) sums[i][0] = product.sums[i][0];
      if (columns_ > 8) sums[i][1] = product.sums[i][8];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = i / 2 * 4 + i % 2;
      if (columns_ > 0) product.sums[i][0] = sums[i][0] + acc[at];
      if (columns_ > 8) product.sums[i][8] = sums[i][1] + acc[at + 2];
    }
  }

  const Plan& plan_;
  const Memory& memory_;
  float* const sums_;  // of the thread's first column
  const int columns_;  // from the warp's first on
  bool b_group_[2];    // of the thread's columns: that after the first column's
  Ring ring_;          // of chunks
};

/// out = the sums, in bf16; by all threads of the block.
template <bool kBlockScales>
__device__ void write_sums(const Work& work, const Memory& memory) {
  const DenseFc2Args& args = work.args;
  const int pieces = work.plan.columns / 8, all = args.shape.tokens * pieces;
  const float scale = kBlockScales ? 1 : __ldg(args.a_scales) * __ldg(args.b_scales);
  for (int i = threadIdx.x; i < all; i += blockDim.x) {
    const int token = i / pieces, piece = i % pieces, column = memory.first_column + piece * 8;
    if (column >= args.shape.hidden) continue;
    const auto* from =
        reinterpret_cast<const float4*>(memory.sums + token * work.plan.pitch + piece * 8);
    const float4 low = from[0], high = from[1];
    *reinterpret_cast<uint4*>(args.out + int64_t{token} * args.shape.hidden + column) = {
        pack_bf16(low.x * scale, low.y * scale), pack_bf16(low.z * scale, low.w * scale),
        pack_bf16(high.x * scale, high.y * scale), pack_bf16(high.z * scale, high.w * scale)};
  }
}

}  // namespace moegate::dense_fc2::sparse_rows
