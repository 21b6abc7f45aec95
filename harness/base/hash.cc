// SPDX-License-Identifier: Apache-2.0
#include "harness/base/hash.h"

#include <cstring>

#include "harness/base/rng.h"

namespace moegate {

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  const auto add = [&seed](uint64_t word) { seed = mix64(seed ^ word) + 0x9e3779b97f4a7c15ull; };
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, p + i, sizeof word);
    add(word);
  }
  uint64_t tail = bytes;
  for (; i < bytes; ++i) tail = tail << 8 | p[i];
  add(tail);
  return seed;
}

}  // namespace moegate
