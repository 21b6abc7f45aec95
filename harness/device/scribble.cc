// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <algorithm>

namespace moegate {

std::vector<Scribble> Scribbler::next(const Problem& problem) {
  constexpr uint32_t kNan = 0x7f817f81, kFree = 0x807e807e;  // bits that may be anything
  std::vector<Scribble> all;
  for (Tensor* tensor : problem.tensors()) {
    const size_t words = tensor->bytes() / sizeof(uint32_t);
    if (tensor->role() != Role::output || words == 0) continue;
    const size_t count = std::min(words, kMostBytes / sizeof(uint32_t));
    const size_t first = std::uniform_int_distribution<size_t>(0, words - count)(random_);
    const uint32_t word = kNan | (static_cast<uint32_t>(random_()) & kFree);
    all.push_back({tensor->data<uint32_t>() + first, count, word});
  }
  return all;
}

void scribble(const Scribble& what) {
  std::fill_n(what.to, what.words, what.word);
}

}  // namespace moegate
