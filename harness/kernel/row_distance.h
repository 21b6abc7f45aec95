// SPDX-License-Identifier: Apache-2.0
// How far the rows of one output are from those of another, where they are: what a Device computes of
// outputs too large to be looked at whole on the host.
#pragma once

#include <cstdint>

#include "harness/kernel/dtype.h"

namespace moegate {

/// Two outputs of one shape, on a device. Row r begins at element places[r] * width, or at r * width
/// where there are no places; these are on the host.
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

}  // namespace moegate
