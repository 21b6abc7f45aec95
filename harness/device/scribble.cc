// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <algorithm>

#include "harness/device/hash_words.h"

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
    hash = mix64(hash ^ hash_of_words(tensor->data(), tensor->bytes(), written_part));
  }
  return hash;
}

void scribble(const Scribble& what) {
  std::fill_n(what.to, what.words, what.word);
}

}  // namespace moegate
