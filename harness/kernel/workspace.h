// SPDX-License-Identifier: Apache-2.0
// How a launch of several steps shares out its workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moegate {

/// Cuts memory into pieces, each aligned to 256 bytes if the memory is. From null it only counts:
/// where the last piece ends is then the size of all.
class WorkspaceCut {
 public:
  explicit WorkspaceCut(void* from) : at_(reinterpret_cast<uintptr_t>(from)) {}

  template <class T>
  void operator()(T*& to, int64_t elements) {
    constexpr size_t kAlignment = 256;
    to = reinterpret_cast<T*>(at_);
    at_ += (static_cast<size_t>(elements) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  uintptr_t at_;
};

}  // namespace moegate
