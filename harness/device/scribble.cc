// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <algorithm>

namespace moegate {

std::vector<Scribble> Scribbler::next(const Problem& problem) {
  constexpr uint32_t kFree = 0x807e807e;  // bits that may be anything
  std::vector<Scribble> all;
  for (Tensor* tensor : problem.tensors()) {
    const size_t words = tensor->bytes() / sizeof(uint32_t);
    if (tensor->role() != Role::output || words == 0) continue;
    const size_t count = std::min(words, kMostBytes / sizeof(uint32_t));
    const size_t first = std::uniform_int_distribution<size_t>(0, words - count)(random_);
    const uint32_t word = kSpoilt | (static_cast<uint32_t>(random_()) & kFree);
    all.push_back({tensor->data<uint32_t>() + first, count, word});
  }
  return all;
}

uint64_t hash_of_written(const Problem& problem) {
  uint64_t hash = 0;
  for (const Tensor* tensor : problem.tensors()) {
    if (tensor->role() != Role::output) continue;
    const void* data = tensor->data();
    const size_t bytes = tensor->bytes(), words = (bytes + 7) / 8;
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (words > 100000)
    for (size_t i = 0; i < words; ++i) {
      sum += hash_of_word(written_part(word_at(data, bytes, i)), i);
    }
    hash = mix64(hash ^ sum);
  }
  return hash;
}

void scribble(const Scribble& what) {
  std::fill_n(what.to, what.words, what.word);
}

}  // namespace moegate
