// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>

namespace moegate {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Indices of the n largest, in descending order; of equal ones the lower first.
std::vector<int64_t> indices_of_largest(std::span<const double> values, int64_t n) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](int64_t a, int64_t b) {
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  order.resize(static_cast<size_t>(n));
  return order;
}

/// Leaves the groups whose two best scores have the largest sums.
void drop_groups(const RouterRule& rule, std::vector<double>& scores) {
  const auto width = static_cast<size_t>(rule.experts / rule.groups);
  std::vector<double> sums;
  for (size_t start = 0; start < scores.size(); start += width) {
    const std::span group(scores.data() + start, width);
    const auto best = indices_of_largest(group, 2);
    sums.push_back(group[static_cast<size_t>(best[0])] + group[static_cast<size_t>(best[1])]);
  }
  const auto kept = indices_of_largest(sums, rule.topk_groups);
  for (size_t e = 0; e < scores.size(); ++e) {
    if (std::ranges::count(kept, static_cast<int64_t>(e / width)) == 0) scores[e] = kNever;
  }
}

std::vector<double> scores_of_token(const RouterRule& rule, std::span<const double> logits,
                                    const std::vector<double>& bias) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (size_t e = 0; e < scores.size(); ++e) {
    if (rule.sigmoid) scores[e] = 1 / (1 + std::exp(-scores[e])) + (bias.empty() ? 0 : bias[e]);
    if (std::isnan(scores[e])) scores[e] = kNever;
  }
  if (rule.sigmoid && rule.groups > 1) drop_groups(rule, scores);
  return scores;
}

}  // namespace

IntTable chosen_experts(const RouterRule& rule, const std::vector<double>& logits,
                        const std::vector<double>& bias) {
  IntTable ids{static_cast<int64_t>(logits.size()) / rule.experts, rule.topk, {}};
  const auto width = static_cast<size_t>(rule.experts);
  for (size_t start = 0; start < logits.size(); start += width) {
    const auto scores = scores_of_token(rule, std::span(logits).subspan(start, width), bias);
    const auto chosen = indices_of_largest(scores, rule.topk);
    ids.values.insert(ids.values.end(), chosen.begin(), chosen.end());
  }
  return ids;
}

IntTable rows_of_rank(const IntTable& ids, int64_t first, int64_t count) {
  IntTable rows{0, 1, {}};
  for (const int64_t id : ids.values) {
    if (id >= first && id < first + count) rows.values.push_back(id - first);
  }
  rows.rows = static_cast<int64_t>(rows.values.size());
  return rows;
}

std::string fault_of_routing(const IntTable& ids, int64_t experts) {
  for (int64_t row = 0; row < ids.rows; ++row) {
    std::set<int64_t> seen;
    for (int64_t slot = 0; slot < ids.columns; ++slot) {
      const int64_t id = ids.at(row, slot);
      if (id < 0 || id >= experts) {
        return fmt::format("row {}: id {} is not in [0, {})", row, id, experts);
      }
      if (!seen.insert(id).second) return fmt::format("row {}: id {} appears twice", row, id);
    }
  }
  return "";
}

std::string npy_bytes(const IntTable& ids) {
  constexpr size_t kPreamble = 10, kAlignment = 64;
  std::string header = fmt::format(
      "{{'descr': '<i4', 'fortran_order': False, 'shape': ({}, {}), }}", ids.rows, ids.columns);
  const size_t whole = (kPreamble + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(whole - kPreamble - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\1\0", 8);
  const auto append = [&](uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  };
  append(header.size(), 2);
  bytes += header;
  for (const int64_t id : ids.values) append(static_cast<uint64_t>(id), 4);
  return bytes;
}

}  // namespace moegate
