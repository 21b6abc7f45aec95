// SPDX-License-Identifier: Apache-2.0
// The chains' other steps: sort the chosen (token, expert) pairs by expert, and zero moe_buf.
//
// Sorting takes one block ("one-shot") while the tokens are few; beyond that, tokens are cut into
// chunks: one launch counts the rows of every chunk and expert, a second adds up what lies before
// each chunk and places its rows.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/place_rows.cuh"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate::topk_sort {
namespace {

using namespace cuda;

constexpr int kOneShotTokens = 64;  // on an H200, 256 tokens in chunks beat 128 in one shot
constexpr int kOneShotThreads = 1024;
constexpr int kChunkThreads = 512;  // at least one per expert
constexpr int kZeroThreads = 512;

/// Tokens of one chunk, a multiple of 32: about 128 chunks, one per SM, within what the 16-bit
/// tables and the shared memory of a block take.
int chunk_tokens(int tokens) {
  if (tokens <= kOneShotTokens) return (tokens + 31) / 32 * 32;
  return std::clamp((tokens / 128 + 31) / 32 * 32, 32, 512);
}

int chunks_of(int tokens) {
  const int size = chunk_tokens(tokens);
  return (tokens + size - 1) / size;
}

__global__ void __launch_bounds__(kChunkThreads)
    count_kernel(const __grid_constant__ TopkSortArgs args, const int32_t* ids, int32_t* chunk_rows,
                 int chunk) {
  extern __shared__ int32_t rows[];  // [experts]
  const int experts = args.shape.experts;
  for (int e = threadIdx.x; e < experts; e += blockDim.x) rows[e] = 0;
  __syncthreads();
  const int first = blockIdx.x * chunk, end = min(first + chunk, args.shape.tokens);
  for (int pair = first * args.shape.topk + threadIdx.x; pair < end * args.shape.topk;
       pair += blockDim.x)
    atomicAdd(&rows[ids[pair]], 1);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x)
    chunk_rows[int64_t{blockIdx.x} * experts + e] = rows[e];
}

/// Blocks below `chunks` place a chunk each; the others zero moe_buf.
__global__ void __launch_bounds__(kOneShotThreads)
    place_kernel(const __grid_constant__ TopkSortArgs args, const ChainBuffers buffers, int chunk,
                 int chunks) {
  const int block = blockIdx.x;
  if (block >= chunks) {
    zero_moe_buf(args, int64_t{block - chunks} * blockDim.x + threadIdx.x,
                 int64_t{static_cast<int>(gridDim.x) - chunks} * blockDim.x);
    return;
  }
  extern __shared__ uint4 shared[];
  const TopkSortShape& shape = args.shape;
  const PlaceTables tables = place_tables(shared, shape.experts, chunk / 32);
  const int first = block * chunk, end = min(first + chunk, shape.tokens), k = shape.topk;
  const int first_pair = first * k + threadIdx.x, end_pair = end * k;
  // The first pair of a thread is usually its only one: have it in flight from the start.
  const int32_t first_id = first_pair < end_pair ? buffers.ids[first_pair] : 0;
  const float first_weight = first_pair < end_pair ? buffers.weights[first_pair] : 0;

  clear_marks(tables);
  __syncthreads();
  for (int pair = first_pair; pair < end_pair; pair += blockDim.x)
    mark(tables, pair / k - first, pair == first_pair ? first_id : buffers.ids[pair]);
  __syncthreads();

  const int expert = threadIdx.x;
  int rows = 0, earlier = 0;
  if (expert < shape.experts) {
    rows = count_rows(tables, expert);
    if (chunks > 1) {
      rows = 0;
#pragma unroll 8
      for (int c = 0; c < chunks; ++c) {
        if (c == block) earlier = rows;
        rows += buffers.chunk_rows[int64_t{c} * shape.experts + expert];
      }
    }
  }
  const int padded = begin_rows(tables, rows, earlier, shape.unit);
  if (block == 0 && expert == shape.experts - 1) write_num_valid(args, padded);
  __syncthreads();

  for (int pair = first_pair; pair < end_pair; pair += blockDim.x) {
    const bool held = pair == first_pair;
    const int token = pair / k;
    const int row = row_of(tables, token - first, held ? first_id : buffers.ids[pair]);
    write_row(args, row, token, pair % k, held ? first_weight : buffers.weights[pair]);
  }
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (int e = block + warp * chunks; e < shape.experts; e += warps * chunks)
    pad_expert(tables, args, e);
}

__global__ void __launch_bounds__(kZeroThreads)
    zero_kernel(const __grid_constant__ TopkSortArgs args) {
  zero_moe_buf(args, int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
               int64_t{gridDim.x} * blockDim.x);
}

/// Blocks that zero beside the sorting ones: one per SM for a small buffer, up to four for one so
/// large that one block's stores in flight do not keep its SM's share of the memory busy.
int zeroing_blocks(const TopkSortArgs& args, int threads, int processors) {
  constexpr int64_t kStoresPerThread = 32;  // of 16 bytes, before another block pays
  const int64_t wanted = args.moe_buf_bytes / (16 * kStoresPerThread * threads);
  const int least = std::max(processors - 1, 1);
  return static_cast<int>(std::clamp<int64_t>(wanted, least, 4 * int64_t{least}));
}

size_t aligned(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace

size_t chain_bytes(const TopkSortShape& shape) {
  const size_t pairs = size_t(shape.tokens) * shape.topk;
  return 2 * aligned(pairs * 4) + size_t(chunks_of(shape.tokens)) * shape.experts * 4;
}

size_t chain_workspace(const Case& c, const DeviceFacts&) {
  return chain_bytes(TopkSortShape::of(c));
}

size_t workspace_beyond(const Case& c, int most) {
  const auto shape = TopkSortShape::of(c);
  return shape.tokens > most ? chain_bytes(shape) : 0;
}

std::string path_up_to(const Case& c, int most) {
  const int tokens = TopkSortShape::of(c).tokens;
  if (tokens <= most) return "fused";
  return fmt::format("fallback: chain2 ({} tokens, at most {} fused)", tokens, most);
}

ChainBuffers chain_buffers(const TopkSortShape& shape, void* workspace) {
  const size_t pairs = aligned(size_t(shape.tokens) * shape.topk * 4);
  char* bytes = static_cast<char*>(workspace);
  return {reinterpret_cast<int32_t*>(bytes), reinterpret_cast<float*>(bytes + pairs),
          reinterpret_cast<int32_t*>(bytes + 2 * pairs)};
}

void launch_sort(const TopkSortArgs& args, const ChainBuffers& buffers, bool zero_too,
                 const Launch& where) {
  const TopkSortShape& shape = args.shape;
  const int chunk = chunk_tokens(shape.tokens), chunks = chunks_of(shape.tokens);
  if (chunks > 1) {
    count_kernel<<<chunks, kChunkThreads, shape.experts * sizeof(int32_t), stream_of(where)>>>(
        args, buffers.ids, buffers.chunk_rows, chunk);
    check_launch("count_kernel");
  }
  const size_t shared = place_bytes(shape.experts, chunk / 32);
  allow_shared(place_kernel, shared);
  const int threads = chunks > 1 ? kChunkThreads : kOneShotThreads;
  const int zero_blocks = zero_too ? zeroing_blocks(args, threads, where.device.processors) : 0;
  place_kernel<<<chunks + zero_blocks, threads, shared, stream_of(where)>>>(args, buffers, chunk,
                                                                            chunks);
  check_launch("place_kernel");
}

void launch_zero(const TopkSortArgs& args, const Launch& where) {
  // As many blocks as keep every SM full, but none without a vector to store.
  const int64_t needed = args.moe_buf_bytes / 16 / kZeroThreads + 1;
  const int blocks = static_cast<int>(std::min<int64_t>(needed, where.device.processors * 4));
  zero_kernel<<<blocks, kZeroThreads, 0, stream_of(where)>>>(args);
  check_launch("zero_kernel");
}

}  // namespace moegate::topk_sort
