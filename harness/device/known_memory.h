// SPDX-License-Identifier: Apache-2.0
// Where a launch's arguments point to, in words that are the same in every process. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

class KnownMemory {
 public:
  /// A problem's tensors, and what a variant's launches allocated for themselves.
  KnownMemory(std::vector<Tensor*> tensors, std::vector<PoolSegment> pool)
      : tensors_(std::move(tensors)), pool_(std::move(pool)), numbers_(pool_.size()) {}

  struct Place {
    std::string name;
    uintptr_t offset;
    const Tensor* tensor;  // null in the pool
  };
  /// Nothing where the word points into neither. A segment is named by its number in the order in
  /// which they are asked for: where and how large they are is up to what the process did before.
  std::optional<Place> place_of(uintptr_t word);

 private:
  const std::vector<Tensor*> tensors_;
  const std::vector<PoolSegment> pool_;
  std::vector<int> numbers_;  // of segments; 0: not asked for yet
  int used_ = 0;
};

}  // namespace moegate
