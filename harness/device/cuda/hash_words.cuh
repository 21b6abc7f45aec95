// SPDX-License-Identifier: Apache-2.0
// Device::hash(), by all threads of a grid.
#pragma once

#include "harness/kernel/device.h"

namespace moegate {

/// The part of the hash that this thread's words of `bytes` bytes have, their numbers counted from
/// `first`; of a word counts what `part` returns.
template <class Part>
__device__ unsigned long long hash_of_threads_words(const void* data, size_t bytes, uint64_t first,
                                                    Part part) {
  const size_t words = (bytes + 7) / 8, step = size_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step)
    mine += hash_of_word(part(word_at(data, bytes, i)), first + i);
  return mine;
}

/// Adds the values of all threads of a block to `sum`, with one atomic operation: one of
/// each thread takes longer than reading the outputs of most operators does (270,000 of them
/// on an H200).
/// Every thread of the block calls it, once.
__device__ inline void add_of_block(unsigned long long mine, unsigned long long* sum) {
  constexpr unsigned kWarp = 32;
  __shared__ unsigned long long of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  for (unsigned away = kWarp / 2; away > 0; away /= 2) {
    mine += __shfl_down_sync(0xffffffffu, mine, away);
  }
  if (threadIdx.x % kWarp == 0) atomicAdd(&of_block, mine);
  __syncthreads();
  if (threadIdx.x == 0 && of_block != 0) atomicAdd(sum, of_block);
}

}  // namespace moegate
