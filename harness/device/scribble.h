// SPDX-License-Identifier: Apache-2.0
// Spoils a part of the outputs before every timed launch. A launch that leaves work out, whatever it
// goes by (the second launch, a pointer seen before, an output that is right already), leaves the
// spoilt part in an output that is compared after timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

/// A word of 4 bytes to be written `words` times. Both halves of it are NaN in bf16 and f16, it is
/// NaN in fp32, two of its bytes may be NaN in e4m3, and no operator has so large an index.
struct Scribble {
  uint32_t* to;
  size_t words;
  uint32_t word;
};

/// Chooses at random, differently in every process, so that no launch knows where to look.
class Scribbler {
 public:
  /// Of a tensor, before one launch: enough to be found, little beside what the flush moves.
  static constexpr size_t kMostBytes = size_t{1} << 20;

  /// A part of every output, that the next launch has to write again.
  std::vector<Scribble> next(const Problem& problem);

 private:
  std::mt19937_64 random_{std::random_device{}()};
};

/// Does it on the host.
void scribble(const Scribble& what);

}  // namespace moegate
