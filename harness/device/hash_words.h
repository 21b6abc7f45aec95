// SPDX-License-Identifier: Apache-2.0
// Device::hash(), of memory of the host, by all of its threads; on a GPU: cuda/hash_words.cuh.
#pragma once

#include "harness/kernel/device.h"

namespace moegate {

/// Of a word of 8 bytes counts what `part` returns.
template <class Part>
uint64_t hash_of_words(const void* data, size_t bytes, Part part) {
  const size_t words = (bytes + 7) / 8;
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (words > 100000)
  for (size_t i = 0; i < words; ++i) sum += hash_of_word(part(word_at(data, bytes, i)), i);
  return sum;
}

}  // namespace moegate
