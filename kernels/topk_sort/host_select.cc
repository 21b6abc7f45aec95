// SPDX-License-Identifier: Apache-2.0
#include "kernels/topk_sort/host_select.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moegate::topk_sort {
namespace {

/// A token's logits as floats, NaN replaced by -infinity.
void load_row(const TopkSortArgs& args, int token, float* row) {
  const auto width = static_cast<size_t>(args.shape.experts);
  const size_t start = static_cast<size_t>(token) * width;
  const auto clean = [](float x) { return x == x ? x : -std::numeric_limits<float>::infinity(); };
  const auto* wide = static_cast<const float*>(args.logits) + start;
  const auto* narrow = static_cast<const uint16_t*>(args.logits) + start;
  switch (args.shape.dtype) {
    case DType::f16:
      for (size_t e = 0; e < width; ++e) row[e] = clean(f16_to_float(narrow[e]));
      break;
    case DType::bf16:
      for (size_t e = 0; e < width; ++e) row[e] = clean(bf16_to_float(narrow[e]));
      break;
    default:
      for (size_t e = 0; e < width; ++e) row[e] = clean(wide[e]);
  }
}

/// Indices of the k largest of row[0, n), descending, lower index first on ties. One pass: an
/// element is compared with the smallest chosen so far, and seldom goes further.
void largest(const float* row, int n, int k, int* chosen) {
  int held = 0;
  for (int e = 0; e < n; ++e) {
    if (held == k && !(row[e] > row[chosen[k - 1]])) continue;
    int slot = held < k ? held++ : k - 1;
    for (; slot > 0 && row[e] > row[chosen[slot - 1]]; --slot) chosen[slot] = chosen[slot - 1];
    chosen[slot] = e;
  }
}

/// Sets the biased scores of the groups that noaux_tc drops to -infinity.
void drop_groups(const TopkSortShape& shape, float* biased) {
  const int width = shape.experts / shape.groups;
  std::array<float, kMaxExperts / 2> sums{};
  std::array<int, kMaxExperts / 2> kept;
  for (int g = 0; g < shape.groups; ++g) {
    float first = -std::numeric_limits<float>::infinity(), second = first;
    for (int e = g * width; e < (g + 1) * width; ++e) {
      second = std::max(second, std::min(first, biased[e]));
      first = std::max(first, biased[e]);
    }
    sums[static_cast<size_t>(g)] = first + second;
  }
  largest(sums.data(), shape.groups, shape.topk_groups, kept.data());
  std::sort(kept.begin(), kept.begin() + shape.topk_groups);
  const int* next = kept.data();
  for (int g = 0; g < shape.groups; ++g) {
    if (next != kept.data() + shape.topk_groups && *next == g) {
      ++next;
      continue;
    }
    std::fill(biased + g * width, biased + (g + 1) * width,
              -std::numeric_limits<float>::infinity());
  }
}

}  // namespace

Choice select(const TopkSortArgs& args, int token) {
  const TopkSortShape& shape = args.shape;
  std::array<float, kMaxExperts> row{}, biased;
  load_row(args, token, row.data());
  const float* deciding = row.data();
  if (shape.scoring == Scoring::noaux_tc) {
    for (int e = 0; e < shape.experts; ++e) {
      const auto i = static_cast<size_t>(e);
      row[i] = 1 / (1 + std::exp(-row[i]));
      biased[i] = row[i] + args.bias[e];
    }
    drop_groups(shape, biased.data());
    deciding = biased.data();
  }
  Choice choice;
  largest(deciding, shape.experts, shape.topk, choice.experts.data());

  const auto k = static_cast<size_t>(shape.topk);
  const bool sigmoid = shape.scoring == Scoring::noaux_tc;
  const float top = row[static_cast<size_t>(choice.experts[0])];
  const auto value = [&](float x) {
    if (sigmoid) return x;
    return std::isinf(x) ? 0.0f : std::exp(x - top);
  };
  float denominator = 0;
  for (size_t j = 0; j < k; ++j) {
    choice.weights[j] = value(row[static_cast<size_t>(choice.experts[j])]);
    denominator += choice.weights[j];
  }
  if (!shape.renorm && sigmoid) denominator = 1;
  if (!shape.renorm && shape.scoring == Scoring::softmax) {
    denominator = 0;
    for (int e = 0; e < shape.experts; ++e) denominator += value(row[static_cast<size_t>(e)]);
  }
  const float factor = denominator > 0 ? shape.scale / denominator : 0;
  for (size_t j = 0; j < k; ++j) choice.weights[j] *= factor;
  return choice;
}

}  // namespace moegate::topk_sort
