// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <algorithm>

#include "harness/device/hash_words.h"

namespace moegate {
namespace {

uint32_t words_apart(const Tensor& tensor) {
  const size_t words = tensor.bytes() / sizeof(uint32_t);
  const auto row_bytes = static_cast<size_t>(tensor.shape().back()) * size_of(tensor.dtype());
  const size_t most =
      std::clamp(row_bytes / sizeof(uint32_t), Scribbler::kLeastApart, Scribbler::kMostApart);
  return static_cast<uint32_t>(std::clamp(words / Scribbler::kUsualWords, size_t{1}, most));
}

}  // namespace

std::vector<Scribble> Scribbler::next(const Problem& problem) {
  constexpr uint32_t kFree = 0x807e807e;  // bits that may be anything
  std::vector<Scribble> all;
  for (Tensor* tensor : problem.tensors()) {
    const size_t words = tensor->bytes() / sizeof(uint32_t);
    const bool written = tensor->role() == Role::output || tensor->role() == Role::workspace;
    if (!written || words == 0) continue;
    const uint32_t word = kSpoilt | (static_cast<uint32_t>(random_()) & kFree);
    all.push_back({tensor->data<uint32_t>(), words, words_apart(*tensor), word, random_()});
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
  for (size_t i = 0; i < what.count(); ++i) what.to[spoilt_place(what, i)] = what.word;
}

}  // namespace moegate
