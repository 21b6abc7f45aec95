// SPDX-License-Identifier: Apache-2.0
// A device: memory, copies, what it is, and what it computes of tensors too large for the host. Two
// exist: the host itself, and one CUDA GPU. How a launch is timed on it is timer.h's concern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/base/error.h"
#include "harness/kernel/dtype.h"
#include "harness/kernel/random_fill.h"
#include "harness/values/device_facts.h"

namespace moegate {

/// What a variant launches was not compiled for the device's chip.
class NoCodeForDevice : public Error {
 public:
  NoCodeForDevice() : Error(Exit::internal, "it has no code for this GPU's chip") {}
};

/// The part of Device::hash() that a word of 8 bytes has, the `i`-th; the hash is their sum.
MOEGATE_HD inline uint64_t hash_of_word(uint64_t word, uint64_t i) {
  return mix64(word ^ mix64(i));
}

/// Word `i` of `bytes` bytes, filled up with zeros at the end. `data` is aligned to 8.
MOEGATE_HD inline uint64_t word_at(const void* data, size_t bytes, uint64_t i) {
  if (8 * (i + 1) <= bytes) return static_cast<const uint64_t*>(data)[i];
  uint64_t word = 0;
  for (size_t at = 8 * i; at < bytes; ++at) {
    word |= uint64_t{static_cast<const uint8_t*>(data)[at]} << (8 * (at - 8 * i));
  }
  return word;
}

/// Two outputs of one shape, on a device. Row r begins at element places[r] * width, or at r *
/// width where there are no places; these are on the host.
struct RowPairs {
  const void *out, *reference;
  const int32_t *out_places, *reference_places;
  int64_t rows, width;
  DType dtype;        // a floating type
  double atol, rtol;  // an element is outside beyond atol + rtol * |reference|
};

/// One row's. Elements that are not finite on both sides count in neither sum.
struct RowDistance {
  double error = 0, size = 0;  // sums of the squares of out - reference, and of reference
  int64_t nonfinite = 0;       // elements that are finite on one side alone, or another infinity
  int64_t outside = 0;

  MOEGATE_HD void add(const RowDistance& other) {
    error += other.error;
    size += other.size;
    nonfinite += other.nonfinite;
    outside += other.outside;
  }
};

MOEGATE_HD inline bool is_finite(float f) {
  return (float_bits(f) & 0x7f800000u) != 0x7f800000u;
}

/// Adds every `step`-th element of row `row` to `distance`, from the `first` on. The places are
/// those of the RowPairs, readable where this runs.
MOEGATE_HD inline void add_row_distance(const RowPairs& pairs, const int32_t* out_places,
                                        const int32_t* reference_places, int64_t row, int64_t first,
                                        int64_t step, RowDistance& distance) {
  const int64_t out = (out_places ? out_places[row] : row) * pairs.width;
  const int64_t reference = (reference_places ? reference_places[row] : row) * pairs.width;
  for (int64_t i = first; i < pairs.width; i += step) {
    const float o = read_float(pairs.dtype, pairs.out, out + i);
    const float r = read_float(pairs.dtype, pairs.reference, reference + i);
    if (!is_finite(o) || !is_finite(r)) {
      const bool both_nan = o != o && r != r;
      distance.nonfinite += o != r && !both_nan;
      continue;
    }
    const double d = double{o} - double{r}, size = r < 0 ? -double{r} : double{r};
    distance.error += d * d;
    distance.size += size * size;
    distance.outside += (d < 0 ? -d : d) > pairs.atol + pairs.rtol * size;
  }
}

class Problem;
struct Variant;

class Device {
 public:
  virtual ~Device() = default;
  const DeviceFacts& facts() const { return facts_; }

  /// Memory of at least `bytes`, aligned to 256. Throws Error(environment) when there is none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* p) noexcept = 0;
  virtual void upload(void* to, const void* from, size_t bytes) = 0;    // host to device
  virtual void download(void* to, const void* from, size_t bytes) = 0;  // device to host, waits
  virtual void copy(void* to, const void* from, size_t bytes) = 0;      // both on the device
  virtual void fill(void* to, uint8_t byte, size_t bytes) = 0;
  /// Writes units [0, units) of a random tensor, where it is.
  virtual void fill_random(void* to, size_t units, const RandomFill& what) = 0;
  /// Tells whether two looks at a tensor saw the same, at the speed of its memory. Not
  /// hash_bytes()'s; the same on every device.
  virtual uint64_t hash(const void* data, size_t bytes) = 0;
  /// Compares two outputs row by row where they are: a RowDistance for every row.
  virtual std::vector<RowDistance> row_distances(const RowPairs& pairs) = 0;
  /// Waits for all work; throws Error(environment) naming the fault when a kernel failed.
  virtual void synchronize() = 0;
  /// Captures what a variant launches, as launch = graph does; nothing runs. Throws what
  /// device/cannot_capture.h has. The host has no graphs.
  virtual void try_capture(const Variant&, Problem&) {}
  /// The stream variants launch on (a cudaStream_t); null on the host.
  virtual void* stream() const { return nullptr; }

 protected:
  DeviceFacts facts_;
};

}  // namespace moegate
