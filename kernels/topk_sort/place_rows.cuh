// SPDX-License-Identifier: Apache-2.0
// Sorting by expert, stable in token order, for a block that owns a chunk of up to words*32
// consecutive tokens. One bit per (expert, token) in shared memory: the number of an expert's rows
// is a population count, the position of a token among them the population count of the lower
// bits, so that no atomic decides an order.
//
// Use: clear -> barrier -> mark every (token, expert) -> barrier -> count_rows -> begin_rows ->
// barrier -> row_of, pad_expert. A block needs at least as many threads as experts.
#pragma once

#include <cstdint>

#include "kernels/topk_sort/row_logits.cuh"

namespace moegate::topk_sort {

struct PlaceTables {
  uint32_t* mask;     // [words][experts] bit b: token word*32 + b of the chunk chose the expert
  int32_t* chunk_at;  // [experts] row where the chunk's rows of the expert begin
  int4* spans;        // [experts] over all chunks: first row, rows, first block, blocks
  int32_t* sums;      // [32] one per warp, for the scan
  uint16_t* earlier;  // [words][experts] rows of the expert in earlier words of the chunk
  int experts, words;
};

__host__ __device__ inline size_t place_bytes(int experts, int words) {
  const size_t per_expert = size_t(words) * 6 + 20;
  return (experts * per_expert + kWarp * 4 + 15) / 16 * 16;
}

__device__ inline PlaceTables place_tables(void* shared, int experts, int words) {
  PlaceTables t;
  t.experts = experts, t.words = words;
  t.spans = static_cast<int4*>(shared);  // first: it needs the 16-byte alignment
  t.mask = reinterpret_cast<uint32_t*>(t.spans + experts);
  t.chunk_at = reinterpret_cast<int32_t*>(t.mask + words * experts);
  t.sums = t.chunk_at + experts;
  t.earlier = reinterpret_cast<uint16_t*>(t.sums + kWarp);
  return t;
}

__device__ inline void clear_marks(const PlaceTables& t) {
  for (int i = threadIdx.x; i < t.words * t.experts; i += blockDim.x) t.mask[i] = 0;
}

/// Token `local` of the chunk chose `expert`.
__device__ inline void mark(const PlaceTables& t, int local, int expert) {
  atomicOr(&t.mask[local / 32 * t.experts + expert], 1u << (local % 32));
}

/// Rows of `expert` in the chunk; fills its `earlier`.
__device__ inline int count_rows(const PlaceTables& t, int expert) {
  int rows = 0;
  for (int i = expert; i < t.words * t.experts; i += t.experts) {
    t.earlier[i] = static_cast<uint16_t>(rows);
    rows += __popc(t.mask[i]);
  }
  return rows;
}

/// Every thread of the block calls it: thread e knows how many `rows` expert e has in all chunks
/// and how many of them lie in `earlier_chunks` (threads beyond the experts: 0). Returns, to thread
/// experts-1, the padded rows of all experts. Needs a barrier before the tables are read.
__device__ inline int begin_rows(const PlaceTables& t, int rows, int earlier_chunks, int unit) {
  const int expert = threadIdx.x;
  const int blocks = static_cast<int>(static_cast<unsigned>(rows + unit - 1) / unit);
  const int through = scan_block(blocks, t.sums);
  if (expert < t.experts) {
    const int first_block = through - blocks;
    t.spans[expert] = make_int4(first_block * unit, rows, first_block, blocks);
    t.chunk_at[expert] = first_block * unit + earlier_chunks;
  }
  return through * unit;
}

/// The row of token `local` of the chunk among the rows of `expert`, which it chose.
__device__ inline int row_of(const PlaceTables& t, int local, int expert) {
  const int i = local / 32 * t.experts + expert;
  return t.chunk_at[expert] + t.earlier[i] + __popc(t.mask[i] & ((1u << (local % 32)) - 1));
}

__device__ inline void write_row(const TopkSortArgs& args, int row, int token, int slot,
                                 float weight) {
  args.sorted_ids[row] = slot << 24 | token;
  args.sorted_weights[row] = weight;
}

/// A warp writes the padding of one expert and the expert of its blocks.
__device__ inline void pad_expert(const PlaceTables& t, const TopkSortArgs& args, int expert) {
  const int lane = threadIdx.x % kWarp;
  const int4 span = t.spans[expert];
  const int begin = span.x, rows = span.y, first_block = span.z, blocks = span.w;
  for (int row = rows + lane; row < blocks * args.shape.unit; row += kWarp)
    write_row(args, begin + row, args.shape.tokens, args.shape.topk, 0);
  for (int block = lane; block < blocks; block += kWarp)
    args.sorted_expert_ids[first_block + block] = expert;
}

__device__ inline void write_num_valid(const TopkSortArgs& args, int padded_rows) {
  args.num_valid[0] = padded_rows;
  args.num_valid[1] = args.shape.tokens;
}

}  // namespace moegate::topk_sort
