// SPDX-License-Identifier: Apache-2.0
// Making host memory cold: removing a problem's operands from every cache level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

class Chiller {
 public:
  /// `cache_bytes` is the size of the last level. Machines without an instruction that flushes a
  /// cache line need it.
  explicit Chiller(int64_t cache_bytes);
  /// Flushes every line of the operands; without such an instruction, reads twice the last level.
  void chill(const Problem& problem);

 private:
  std::vector<char> sweep_;
};

/// Where the cache line of an address begins. Tensors of a guest begin anywhere in one.
const char* first_line(const void* from);

/// Has every thread take branches at random. A processor remembers how those went that a launch
/// took on the same few inputs some times before; behind this it has forgotten.
void forget_branches();

/// Reads a byte of every cache line of a range.
void touch_lines(const void* from, size_t bytes);

}  // namespace moegate
