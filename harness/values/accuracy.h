// SPDX-License-Identifier: Apache-2.0
// Output against truth: several metrics at once, so that no single blind spot hides an error.
// Pure functions on host arrays. Every comparison is written so that NaN fails.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/names.h"
#include "harness/values/rounding.h"

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
  // A row's error is rms(out - truth) / max(rms(truth), 1e-3 * its median over the rows): a wrong
  // expert or a dropped token spoils one row, which the whole tensor averages away.
  double worst_row = 0;      // largest row error
  double row_p999 = 0;       // 99.9th percentile of the row errors (nearest rank)
  int64_t worst_index = -1;  // flat index of the element with the largest excess over tolerance
  double truth = 0;          // what the truth comes to: weight_of(); 0: all zero, or unknown
  // What its own rounding does not explain, and the Tolerance::between that it was held to.
  BeyondRounding rounding = {};
  double between = -1;

  /// What is allowed of `rounding`, all 0 where nothing is stated; and what exceeds it, in words.
  BeyondRounding allowed() const;
  std::string beyond() const;
};

/// The outputs of one problem set in short: the worst over its outputs, and their hash. Two runs
/// are compared seed by seed.
struct SeedError {
  int64_t seed = 0;
  uint64_t hash = 0;  // of every output: equal means bit-identical
  double rel_l2 = 0;
  double worst_row = 0;
  double bias = 0;  // scale - 1, the one furthest from 0
  // What the operator asked of the variant; 0: unknown.
  uint64_t inputs = 0;  // hash of what is in them
  uint64_t terms = 0;   // pack_terms()
  double truth = 0;     // of all outputs: Accuracy::truth, added up
  BeyondRounding rounding = {};
};

BeyondRounding mean_rounding(std::span<const SeedError> seeds);

/// Hashes of an operator's tensors (names, roles, types, shapes), of its limits, and of its cost,
/// in one number.
uint64_t pack_terms(uint64_t tensors, uint64_t limits, uint64_t cost);
/// In what two seeds' questions differ, in words; empty: in nothing, or one of them is not known.
std::string other_question(const SeedError& base, const SeedError& head);

/// What became of a negative control: outputs spoilt on purpose, which the check must reject.
/// unchanged: there was nothing to spoil in this case's outputs, so it says nothing.
enum class ControlOutcome { rejected, accepted, unchanged, not_applicable };
template <>
inline constexpr std::array kNames<ControlOutcome> = {"rejected", "accepted", "no change",
                                                      "not applicable"};

struct Control {
  std::string name;    // "scaled by 1.05"
  std::string output;  // the tensor spoilt; empty where the operator chose
  ControlOutcome outcome = ControlOutcome::rejected;
  std::string why;  // accepted: the metrics that passed; not_applicable: the operator's reason
};

/// Which part of an output is compared, so that an element is named by its place in the whole.
struct Place {
  std::vector<int64_t> rows = {}, columns = {};  // of the output, ascending; empty: all
  /// What a row is, "token 12, expert 5"; empty: nothing to say.
  std::function<std::string(int64_t row)> name = {};
};

/// Sum of the magnitudes of a truth, each by a weight of its place and its sign: other values have
/// another sum. Unlike a hash it forgives what compilers and processors round differently.
double weight_of(std::span<const double> truth);

/// Compares floats of a type row by row (`row` = elements per row, dividing the size).
Accuracy compare_floats(std::string output, std::span<const float> out,
                        std::span<const double> truth, int64_t row, const Tolerance& tolerance,
                        const FloatType& type, const Place& place = {});

Accuracy compare_exact(std::string output, std::span<const int32_t> out,
                       std::span<const int32_t> truth);

Accuracy compare_zero(std::string output, std::span<const uint8_t> out);

}  // namespace moegate
