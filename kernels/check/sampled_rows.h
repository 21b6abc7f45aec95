// SPDX-License-Identifier: Apache-2.0
// Rows of tensors too large to be judged whole: which ones are looked at, how they come to the
// host, and what is demanded of all the others.
#pragma once

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "harness/kernel/check.h"
#include "harness/kernel/kernel.h"
#include "harness/kernel/random_fill.h"

namespace moegate::check {

/// What an fp8 product on tensor cores rounds in between (Tolerance::between): they align and cut
/// what they add, so that sums have some 14 bits. Measured on an H200, sums taken out every 128 of
/// K: 6.7 % of elements are not the truth rounded to bf16, which is a shift of 2.6e-4.
constexpr double kFp8TensorCores = 3.5e-4;

/// All of `rows` where there are at most `most`; else at most that many: the first, the last and
/// seeded ones between. Ascending.
inline std::vector<int64_t> sampled_rows(int64_t rows, int64_t most, uint64_t seed) {
  constexpr uint64_t kStream = 321;  // of the counter-based generator
  std::set<int64_t> sample = {0, rows - 1};
  for (int64_t i = 0; i < (rows <= most ? rows : most - 2); ++i) {
    const uint64_t bits = random_bits(seed, kStream, static_cast<uint64_t>(i));
    sample.insert(rows <= most ? i : static_cast<int64_t>(bits % static_cast<uint64_t>(rows)));
  }
  return {sample.begin(), sample.end()};
}

/// Of the token at `place`, where every token has `topk` rows, behind each other.
inline std::vector<int64_t> rows_of_token(int64_t place, int topk) {
  std::vector<int64_t> rows(static_cast<size_t>(topk));
  std::iota(rows.begin(), rows.end(), place * topk);
  return rows;
}

/// Rows of a tensor seen as rows of `width` elements, neighbours in one piece.
template <class T>
std::vector<T> rows_of(Device& device, const Tensor& tensor, int64_t width,
                       const std::vector<int64_t>& rows) {
  std::vector<T> values(rows.size() * static_cast<size_t>(width));
  const T* from = static_cast<const T*>(tensor.data());
  for (size_t first = 0, end; first < rows.size(); first = end) {
    end = first + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const size_t elements = (end - first) * static_cast<size_t>(width);
    device.download(values.data() + first * static_cast<size_t>(width), from + rows[first] * width,
                    elements * sizeof(T));
  }
  return values;
}

inline std::vector<uint16_t> to_bf16(const std::vector<double>& values) {
  std::vector<uint16_t> bits;
  bits.reserve(values.size());
  for (const double v : values) bits.push_back(float_to_bf16(static_cast<float>(v)));
  return bits;
}
inline std::vector<double> from_bf16(const std::vector<uint16_t>& bits) {
  std::vector<double> values;
  values.reserve(bits.size());
  for (const uint16_t b : bits) values.push_back(bf16_to_float(b));
  return values;
}

inline bool is_nonfinite_bf16(uint16_t bits) {
  return (bits & 0x7f80) == 0x7f80;
}

/// Elements outside the sample cannot be judged, but one that nobody wrote is poison: fails `a`
/// where any element of the whole output is not finite.
template <class T>
void reject_nonfinite(Accuracy& a, const std::vector<T>& out, bool (*is_nonfinite)(T)) {
  const auto first = std::find_if(out.begin(), out.end(), is_nonfinite);
  if (first == out.end() || !a.ok) return;
  a.ok = false;
  a.nonfinite = std::count_if(first, out.end(), is_nonfinite);
  a.worst_index = first - out.begin();
  a.why = fmt::format("{}: {} of all {} elements are not finite, first at {}", a.output,
                      a.nonfinite, out.size(), a.worst_index);
}

/// What a row of an operator is, for the sentence that names it; see Place.
using RowName = std::function<std::string(int64_t row)>;

/// Of outputs with a row per token.
inline std::string token_name(int64_t row) {
  return fmt::format("token {}", row);
}

/// A bf16 output [any, width], `bits`, compared at these rows and columns with the truth [rows,
/// columns]; all that lies outside of them must be finite.
inline Accuracy compare_bf16_at(const std::string& name, const std::vector<uint16_t>& bits,
                                int64_t width, const std::vector<int32_t>& rows,
                                const std::vector<int32_t>& columns,
                                const std::vector<double>& truth, const Tolerance& tolerance,
                                const RowName& row_name) {
  std::vector<float> values;
  values.reserve(truth.size());
  for (const int64_t r : rows) {
    const uint16_t* row = bits.data() + r * width;
    for (const int32_t c : columns) values.push_back(bf16_to_float(row[c]));
  }
  const bool samples = truth.size() < bits.size();
  const Place place{{rows.begin(), rows.end()}, {columns.begin(), columns.end()}, row_name};
  Accuracy a = compare_floats(samples ? name + " (sample)" : name, values, truth,
                              static_cast<int64_t>(columns.size()), tolerance, kBf16, place);
  if (samples) reject_nonfinite(a, bits, is_nonfinite_bf16);
  return a;
}

/// A bf16 output [any, width], of which `rows` are compared with the truth.
inline Checked check_bf16_rows(const Tensor& output, int64_t width,
                               const std::vector<int64_t>& rows, const std::vector<double>& truth,
                               const Tolerance& tolerance, const RowName& row_name) {
  const auto bits = output.download<uint16_t>();
  std::vector<float> values;
  values.reserve(truth.size());
  for (const int64_t r : rows) {
    for (int64_t i = r * width; i < (r + 1) * width; ++i) {
      values.push_back(bf16_to_float(bits[static_cast<size_t>(i)]));
    }
  }
  const bool samples = truth.size() < bits.size();
  Accuracy a = compare_floats(samples ? output.name() + " (sample)" : output.name(), values, truth,
                              width, tolerance, kBf16, {.rows = rows, .name = row_name});
  reject_nonfinite(a, bits, is_nonfinite_bf16);
  return {{a}, hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

/// For negative controls: a bf16 output [any, width] becomes `wrong` at these rows and columns,
/// where that is not the truth.
template <class Row>
void spoil_bf16(Tensor& output, int64_t width, const std::vector<Row>& rows,
                const std::vector<int32_t>& columns, const std::vector<double>& truth,
                const std::vector<double>& wrong) {
  auto out = output.download<uint16_t>();
  size_t i = 0;
  for (const int64_t r : rows) {
    uint16_t* row = out.data() + r * width;
    for (const int32_t c : columns) {
      if (wrong[i] != truth[i]) row[c] = float_to_bf16(static_cast<float>(wrong[i]));
      ++i;
    }
  }
  output.upload(out);
}

/// Rows of a bf16 output [any, width] compared with their truth, for Problem::check_rows(). A row
/// is where `places` says; empty: where its number says.
inline Accuracy compare_bf16_rows(Device& device, const Tensor& output, int64_t width,
                                  const std::vector<int64_t>& rows,
                                  const std::vector<int32_t>& places,
                                  const std::vector<double>& truth, const Tolerance& tolerance,
                                  const RowName& row_name) {
  std::vector<float> values;
  values.reserve(truth.size());
  for (const int64_t r : rows) {
    const int64_t at = places.empty() ? r : places[static_cast<size_t>(r)];
    for (const uint16_t bits : rows_of<uint16_t>(device, output, width, {at})) {
      values.push_back(bf16_to_float(bits));
    }
  }
  return compare_floats(output.name() + " (rows)", values, truth, width, tolerance.of_rows(), kBf16,
                        {.rows = rows, .name = row_name});
}

}  // namespace moegate::check
