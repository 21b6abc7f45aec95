// SPDX-License-Identifier: Apache-2.0
// What cublaslt_plain makes of a before a library can multiply it: codes of alpha * a, with one
// scale factor for all, so that the largest becomes e4m3's largest. Plain arithmetic, the same on
// host and device.
#pragma once

#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2::cublaslt {

/// Factor on the operator's ceilings. alpha * a is rounded to e4m3 once more: 2.6 to 3.1 % of
/// relative L2 error, which K does not average away, against the 0.17 % of a variant that
/// multiplies sums by alpha. Computed on the host, 240 problems of 7 to 130 tokens, k of 1 to 8: at
/// most 3.1 %, worst row 4.7 %, scale 1 %. An element is off by that much of its row, however small
/// it is: it is judged by kBetween.
constexpr double kTolerance = 13;
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
