// SPDX-License-Identifier: Apache-2.0
// The truth of topk_sort: plain double code, written to be read next to the definition in
// topk_sort.h. No variant shares a line with it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr double kAmbiguous = 1e-5;  // a hundred fp32 roundings of a score near 1

/// Indices of the n largest values, in descending order; equal values by ascending index.
std::vector<int> largest(const std::vector<double>& values, int n) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](int a, int b) {
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  order.resize(static_cast<size_t>(n));
  return order;
}

struct GroupScore {
  double first, second;  // the two largest biased scores
  double sum() const { return first + second; }
};

std::vector<GroupScore> group_scores(const TopkSortShape& shape,
                                     const std::vector<double>& biased) {
  const auto width = static_cast<size_t>(shape.experts / shape.groups);
  std::vector<GroupScore> scores;
  for (size_t g = 0; g < static_cast<size_t>(shape.groups); ++g) {
    std::vector<double> members(biased.begin() + static_cast<std::ptrdiff_t>(g * width),
                                biased.begin() + static_cast<std::ptrdiff_t>((g + 1) * width));
    std::partial_sort(members.begin(), members.begin() + 2, members.end(), std::greater<>());
    scores.push_back({members[0], members[1]});
  }
  return scores;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Scores that decide the selection of one token: biased sigmoids outside the kept groups become
/// -infinity for noaux_tc; for the others the logits themselves (softmax does not reorder them).
std::vector<double> selection_scores(const TopkSortShape& shape, const float* logits,
                                     const float* bias) {
  std::vector<double> scores;
  for (int e = 0; e < shape.experts; ++e) {
    scores.push_back(std::isnan(logits[e]) ? kMinusInfinity : logits[e]);
  }
  if (shape.scoring != Scoring::noaux_tc) return scores;
  for (int e = 0; e < shape.experts; ++e) {
    scores[static_cast<size_t>(e)] = sigmoid(scores[static_cast<size_t>(e)]) + bias[e];
  }
  std::vector<double> sums;
  for (const GroupScore& g : group_scores(shape, scores)) sums.push_back(g.sum());
  std::vector<bool> kept(sums.size(), false);
  for (int g : largest(sums, shape.topk_groups)) kept[static_cast<size_t>(g)] = true;
  const int width = shape.experts / shape.groups;
  for (int e = 0; e < shape.experts; ++e) {
    if (!kept[static_cast<size_t>(e / width)]) scores[static_cast<size_t>(e)] = kMinusInfinity;
  }
  return scores;
}

std::vector<double> weights(const TopkSortShape& shape, const float* logits,
                            const std::vector<int>& chosen) {
  std::vector<double> numerator;
  double top = kMinusInfinity;
  for (int e = 0; e < shape.experts; ++e) {
    if (logits[e] > top) top = logits[e];  // false for NaN
  }
  const auto value = [&](int e) -> double {
    if (shape.scoring == Scoring::noaux_tc) return sigmoid(logits[e]);
    const double x = std::isnan(logits[e]) ? kMinusInfinity : logits[e];
    return x == kMinusInfinity ? 0 : std::exp(x - top);
  };
  for (int e : chosen) numerator.push_back(value(e));
  double denominator = 1;
  if (shape.scoring == Scoring::topk_softmax || shape.renorm) {
    denominator = std::accumulate(numerator.begin(), numerator.end(), 0.0);
  } else if (shape.scoring == Scoring::softmax) {
    denominator = 0;
    for (int e = 0; e < shape.experts; ++e) denominator += value(e);
  }
  for (double& w : numerator) w = denominator > 0 ? w / denominator * shape.scale : 0;
  return numerator;
}

void sort_by_expert(const TopkSortShape& shape, TopkSortTruth& truth) {
  const auto k = static_cast<size_t>(shape.topk);
  std::vector<std::vector<size_t>> rows(static_cast<size_t>(shape.experts));
  for (size_t row = 0; row < truth.topk_ids.size(); ++row) {
    rows[static_cast<size_t>(truth.topk_ids[row])].push_back(row);
  }
  for (size_t e = 0; e < rows.size(); ++e) {
    for (size_t row : rows[e]) {
      truth.sorted_ids.push_back(static_cast<int32_t>((row % k) << 24 | row / k));
      truth.sorted_weights.push_back(truth.topk_weights[row]);
    }
    while (truth.sorted_ids.size() % static_cast<size_t>(shape.unit) != 0) {
      truth.sorted_ids.push_back(shape.topk << 24 | shape.tokens);
      truth.sorted_weights.push_back(0);
    }
    while (truth.sorted_expert_ids.size() * static_cast<size_t>(shape.unit) <
           truth.sorted_ids.size()) {
      truth.sorted_expert_ids.push_back(static_cast<int32_t>(e));
    }
  }
  truth.num_valid = {static_cast<int32_t>(truth.sorted_ids.size()), shape.tokens};
}

/// Whether neighbours among the first n of the descending values are too close to call.
bool close_call(std::vector<double> values, int n) {
  std::sort(values.begin(), values.end(), std::greater<>());
  for (size_t i = 0; i < static_cast<size_t>(n) && i + 1 < values.size(); ++i) {
    if (values[i] != values[i + 1] && values[i] - values[i + 1] < kAmbiguous) return true;
  }
  return false;
}

}  // namespace

TopkSortTruth topk_sort_truth(const TopkSortShape& shape, const std::vector<float>& logits,
                              const std::vector<float>& bias) {
  TopkSortTruth truth;
  for (int t = 0; t < shape.tokens; ++t) {
    const float* row = logits.data() + static_cast<std::ptrdiff_t>(t) * shape.experts;
    const auto chosen = largest(selection_scores(shape, row, bias.data()), shape.topk);
    truth.topk_ids.insert(truth.topk_ids.end(), chosen.begin(), chosen.end());
    const auto w = weights(shape, row, chosen);
    truth.topk_weights.insert(truth.topk_weights.end(), w.begin(), w.end());
  }
  sort_by_expert(shape, truth);
  return truth;
}

bool selection_is_ambiguous(const TopkSortShape& shape, const float* logits, const float* bias) {
  if (shape.scoring != Scoring::noaux_tc) return false;  // decided by the logits, exactly
  std::vector<double> biased;
  for (int e = 0; e < shape.experts; ++e) biased.push_back(sigmoid(logits[e]) + bias[e]);
  const auto groups = group_scores(shape, biased);
  for (size_t a = 0; a < groups.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool equal = groups[a].first == groups[b].first && groups[a].second == groups[b].second;
      if (!equal && std::abs(groups[a].sum() - groups[b].sum()) < kAmbiguous) return true;
    }
  }
  return close_call(selection_scores(shape, logits, bias), shape.topk);
}

}  // namespace moegate::topk_sort
