// SPDX-License-Identifier: Apache-2.0
// Output against truth: several metrics at once, so that no single blind spot hides an error.
// Pure functions on host arrays. Every comparison is written so that NaN fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace moegate {

/// How far one output tensor is from the truth. Stored with every result.
struct Accuracy {
  std::string output;  // tensor name
  bool ok = false;
  std::string why;         // one sentence when not ok, naming the worst element
  int64_t elements = 0;    // compared
  int64_t mismatches = 0;  // outside the element tolerance (for integers: not equal)
  int64_t nonfinite = 0;   // NaN or infinite where the truth is finite, or the reverse
  double rel_l2 = 0;       // ||out - truth|| / ||truth||
  double cosine = 1;       // <out, truth> / (||out|| ||truth||)
  double scale = 1;        // least-squares s of out = s * truth: 1.05 for a uniform 5 % error
  double max_abs = 0;      // largest |out - truth|
  double max_rel = 0;      // largest |out - truth| / max(|truth|, atol)
  double worst_row =
      0;  // largest row error: rms(out_t - truth_t) / max(rms(truth_t), 1e-3 * median)
  double row_p999 = 0;       // 99.9th percentile of the row errors
  int64_t worst_index = -1;  // flat index of the element with the largest excess over tolerance
};

/// The outputs of one problem set in short: the worst over its outputs, and their hash. Two runs are
/// compared seed by seed.
struct SeedError {
  int64_t seed = 0;
  uint64_t hash = 0;  // of every output: equal means bit-identical
  double rel_l2 = 0;
  double worst_row = 0;
  double bias = 0;  // scale - 1, the one furthest from 0
};

/// Limits for floating outputs; an output passes only when it passes all of them.
struct Tolerance {
  double rtol = 0;  // per element: |out - truth| <= atol + rtol * |truth|
  double atol = 0;
  double rel_l2 = 0;  // whole tensor
  double scale = 0;   // |scale - 1|
};

/// Compares floats row by row (`row` = elements per row, dividing the size).
Accuracy compare_floats(std::string output, std::span<const float> out,
                        std::span<const double> truth, int64_t row, const Tolerance& tolerance);

/// Compares integers exactly.
Accuracy compare_exact(std::string output, std::span<const int32_t> out,
                       std::span<const int32_t> truth);

/// Demands that every byte is zero.
Accuracy compare_zero(std::string output, std::span<const uint8_t> out);

}  // namespace moegate
