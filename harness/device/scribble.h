// SPDX-License-Identifier: Apache-2.0
// Spoils words all over the outputs and the workspace before every timed launch. A launch that
// leaves work out, whatever it goes by (the second launch, a pointer seen before, an output that is
// right already), leaves spoilt words in an output that is compared after timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "harness/base/rng.h"
#include "harness/kernel/kernel.h"

namespace moegate {

/// What spoils outputs: every byte of them before a batch, words all over them before a launch.
/// All words have kSpoilt's bits, or are kOtherSpoilt.
constexpr uint32_t kSpoilt = 0x7f817f81, kOtherSpoilt = 0x55555555;
constexpr uint8_t kOtherPoisonByte = 0x55;

/// A word of an output with zeros in place of each half that nobody wrote since it was spoilt. So
/// hashes agree over rows that are undefined, and differ where a launch left out what others write.
/// What a variant writes and looks so (NaN, an index of -1) is not told apart.
MOEGATE_HD inline uint64_t written_part(uint64_t word) {
  const auto part = [](uint32_t half) {
    return (half & kSpoilt) == kSpoilt || half == kOtherSpoilt ? uint32_t{0} : half;
  };
  return part(static_cast<uint32_t>(word)) | uint64_t{part(static_cast<uint32_t>(word >> 32))}
                                                 << 32;
}

/// Hash of what was written to every output of a problem in the host's memory.
uint64_t hash_of_written(const Problem& problem);

/// A word of 4 bytes, with kSpoilt's bits, to be written once into each `every` of the `words` of a
/// tensor, where spoilt_place() says. Both halves of it are NaN in bf16 and f16, it is NaN in fp32,
/// two of its bytes may be NaN in e4m3, and no operator has so large an index.
struct Scribble {
  uint32_t* to;
  size_t words;
  uint32_t every, word;
  uint64_t draw;  // of the places

  MOEGATE_HD size_t count() const { return (words + every - 1) / every; }
};

/// Where in the tensor the i-th word is spoilt: anywhere in its part.
MOEGATE_HD inline size_t spoilt_place(const Scribble& what, size_t i) {
  const uint64_t bits = mix64(what.draw + i) >> 32;
  const size_t place = i * what.every + (bits * what.every >> 32);
  return place < what.words ? place : what.words - 1;
}

/// Chooses at random, differently in every process, so that no launch knows where to look.
class Scribbler {
 public:
  /// A word in every row (the last dimension) or every 4 KiB of a tensor, whichever is less, and
  /// more up to a total that is little beside what the flush moves: small ones are spoilt whole.
  static constexpr size_t kMostApart = 4096 / sizeof(uint32_t), kUsualWords = size_t{1} << 14;
  /// A row of less than a cache line's sectors costs as much to spoil as to write.
  static constexpr size_t kLeastApart = 32;

  /// Words of every output, that the next launch has to write again, and of the workspace.
  std::vector<Scribble> next(const Problem& problem);

 private:
  std::mt19937_64 random_{std::random_device{}()};
};

/// Does it on the host.
void scribble(const Scribble& what);

}  // namespace moegate
