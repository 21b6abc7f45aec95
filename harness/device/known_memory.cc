// SPDX-License-Identifier: Apache-2.0
#include "harness/device/known_memory.h"

#include <fmt/format.h>

namespace moegate {

std::optional<KnownMemory::Place> KnownMemory::place_of(uintptr_t word) {
  // First, because a tensor's end may be where a segment begins.
  for (size_t i = 0; i < pool_.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(pool_[i].data);
    if (word < begin || word - begin >= pool_[i].bytes) continue;
    if (numbers_[i] == 0) numbers_[i] = ++used_;
    return Place{fmt::format("pool {}", numbers_[i]), word - begin, nullptr};
  }
  for (const Tensor* tensor : tensors_) {
    const auto begin = reinterpret_cast<uintptr_t>(tensor->data());
    // From the first byte of a guard to the one behind the other: ends are pointed to, too.
    if (word + Tensor::kGuardBytes < begin ||
        word > begin + tensor->bytes() + Tensor::kGuardBytes) {
      continue;
    }
    return Place{tensor->name(), word - begin, tensor};
  }
  return std::nullopt;
}

}  // namespace moegate
