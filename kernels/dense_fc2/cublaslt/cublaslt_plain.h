// SPDX-License-Identifier: Apache-2.0
// What cublaslt_plain makes of a before a library can multiply it: codes of alpha * a, with one
// scale factor for all, so that the largest becomes e4m3's largest. Plain arithmetic, the same on
// host and device.
#pragma once

#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2::cublaslt {

/// Factor on the operator's ceilings. alpha * a is rounded to e4m3 once more: 2.6 to 3.1 % of
/// relative L2 error, which K does not average away, against the 0.17 % of a variant that
/// multiplies sums by alpha. What decides is single elements (10 % of unit size): they are off by
/// that much of their row, and some rows are twice the usual size. Computed on the host: the
/// largest factor needed is 15.0 for E = 256 and k = 8 (76 problems of 1 to 128 tokens). For k of 1
/// to 3, whose rows differ more in size, 3 of 474 problems (65 to 300 tokens) need more than this
/// one, 20.6 at most. From 20 on an output 5 % too large would pass at few tokens; the other
/// negative controls are far away.
constexpr double kTolerance = 19.5;
/// That rounding, of all elements: 0.43 x 2^-4, and as much again where codes are small.
constexpr double kBetween = 0.04;

constexpr float kLargestCode = 448;

/// What turns alpha * a, the value of a's code taken as it is, into the value of a code, where
/// `largest` is the largest |alpha * a|.
MOEGATE_HD inline float code_factor(float largest) {
  return largest > 0 ? kLargestCode / largest : 0;
}

MOEGATE_HD inline uint8_t folded_code(uint8_t code, float alpha, float factor) {
  return float_to_e4m3(e4m3_to_float(code) * alpha * factor);
}

/// The scale factor of the folded codes, from that of a.
MOEGATE_HD inline float folded_scale(float a_scale, float largest) {
  return a_scale * (largest / kLargestCode);
}

}  // namespace moegate::dense_fc2::cublaslt
