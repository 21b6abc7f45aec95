// SPDX-License-Identifier: Apache-2.0
// The truth of dense_fc2, expert by expert by the plain double code of the grouped GEMMs: a row
// needs no expert whose alpha is 0, which is what the definition in dense_fc2.h says of it. No
// variant shares a line with it.
#include <algorithm>

#include "kernels/check/sampled_rows.h"
#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2 {
namespace {

/// Elements [first, first + count) of row `row` of `rows` of `width` elements each, appended.
template <class T>
void append_slice(const std::vector<T>& rows, size_t width, size_t row, size_t first, size_t count,
                  std::vector<T>& to) {
  const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row * width + first);
  to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

/// Scale factors of b [columns, E*I/128] at the sample; transposed: those of a kernel that takes
/// [ceil(H/128), E*I/128] for [E*I/128, ceil(H/128)].
std::vector<float> DenseFc2::column_scales(const std::vector<int32_t>& columns,
                                           bool transposed) const {
  const auto scales = b_scales_.download<float>();
  const auto k_groups = static_cast<size_t>(shape.k_groups());
  const auto n_groups = static_cast<size_t>(shape.n_groups());
  std::vector<float> all;
  all.reserve(columns.size() * k_groups);
  for (const int32_t c : columns) {
    const size_t group = static_cast<size_t>(c) / kMoeGroup;
    for (size_t g = 0; g < k_groups; ++g) {
      const size_t right = group * k_groups + g, wrong = g * n_groups + group;
      all.push_back(scales[!shape.block_scales ? 0 : transposed ? wrong : right]);
    }
  }
  return all;
}

DenseFc2::Excerpt DenseFc2::excerpt(Fault fault, const moe_gemm::MoeGemmSample& at) const {
  const std::vector<int64_t> rows(at.rows.begin(), at.rows.end());
  const std::vector<int64_t> columns(at.columns.begin(), at.columns.end());
  const int64_t k = shape.k(), groups = shape.k_groups();
  Excerpt x;
  x.a = check::rows_of<uint8_t>(device(), a_, k, rows);
  x.b = check::rows_of<uint8_t>(device(), b_, k, columns);
  x.b_scales = column_scales(at.columns, fault == Fault::scales_transposed);
  x.a_scales = shape.block_scales ? check::rows_of<float>(device(), a_scales_, groups, rows)
                                  : std::vector<float>(rows.size() * static_cast<size_t>(groups),
                                                       a_scales_.download<float>().front());
  x.alpha = check::rows_of<float>(device(), alpha_, shape.experts, rows);
  break_alpha(fault, x.alpha);
  return x;
}

/// The first row's first expert changes columns of alpha with another, or does not count.
void DenseFc2::break_alpha(Fault fault, std::vector<float>& alpha) const {
  const auto experts = static_cast<size_t>(shape.experts);
  const auto used = std::find_if(alpha.begin(), alpha.end(), [](float x) { return x != 0; });
  const auto first = static_cast<size_t>(used - alpha.begin()) % experts;
  if (used == alpha.end()) return;
  if (fault == Fault::token_dropped) *used = 0;
  if (fault != Fault::experts_swapped) return;
  const size_t other = (first + 1) % experts;
  for (size_t row = 0; row < alpha.size(); row += experts) {
    std::swap(alpha[row + first], alpha[row + other]);
  }
}

/// The expected output [rows, columns] of a sample.
std::vector<double> DenseFc2::truth(Fault fault, const moe_gemm::MoeGemmSample& at) const {
  const Excerpt x = excerpt(fault, at);
  const auto experts = static_cast<size_t>(shape.experts), inter = static_cast<size_t>(shape.inter);
  const size_t k = experts * inter, groups = inter / kMoeGroup, width = at.columns.size();
  std::vector<double> out(at.rows.size() * width);
  for (size_t e = 0; e < experts; ++e) {
    moe_gemm::ExpertProduct part{.k = shape.inter, .dtype = DType::e4m3};
    std::vector<size_t> rows;
    for (size_t row = 0; row < at.rows.size(); ++row) {
      const float alpha = x.alpha[row * experts + e];
      if (alpha == 0) continue;
      rows.push_back(row);
      part.routing_weights.push_back(alpha);
      append_slice(x.a, k, row, e * inter, inter, part.x);
      append_slice(x.a_scales, experts * groups, row, e * groups, groups, part.x_scales);
    }
    if (rows.empty()) continue;
    for (size_t column = 0; column < width; ++column) {
      append_slice(x.b, k, column, e * inter, inter, part.weights);
      append_slice(x.b_scales, experts * groups, column, e * groups, groups, part.weight_scales);
    }
    const auto y = moe_gemm::expert_truth(part);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t column = 0; column < width; ++column) {
        out[rows[i] * width + column] += y[i * width + column];
      }
    }
  }
  return out;
}

}  // namespace moegate::dense_fc2
