// SPDX-License-Identifier: Apache-2.0
// What the truths of whole layers share: rows are assigned to experts, computed expert by expert
// and added up token by token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace moegate::check {

/// Who computes what: the experts (-1: another rank's) and routing weights of all rows, of which
/// every token has `topk`.
struct Assignment {
  std::vector<int32_t> experts;
  std::vector<float> weights;
  int topk;

  /// Of each token that has rows of this rank: the first of them.
  std::vector<size_t> first_rows(const std::vector<int64_t>& tokens) const {
    std::vector<size_t> rows;
    for (const int64_t t : tokens) {
      for (int64_t r = t * topk; r < (t + 1) * topk; ++r) {
        if (experts[static_cast<size_t>(r)] >= 0) {
          rows.push_back(static_cast<size_t>(r));
          break;
        }
      }
    }
    return rows;
  }

  /// The first row of `tokens` changes experts with a row of another one.
  void swap_experts(const std::vector<int64_t>& tokens) {
    const std::vector<size_t> rows = first_rows(tokens);
    const auto other =
        std::ranges::find_if(rows, [&](size_t r) { return experts[r] != experts[rows.front()]; });
    if (other != rows.end()) std::swap(experts[*other], experts[rows.front()]);
  }

  /// The first row of `tokens` no longer counts.
  void drop_row(const std::vector<int64_t>& tokens) {
    const std::vector<size_t> rows = first_rows(tokens);
    if (!rows.empty()) weights[rows.front()] = 0;
  }
};

/// Outputs of `tokens`, [tokens, width], from rows_of(expert, its rows of theirs), [rows, width].
template <class RowsOf>
std::vector<double> sums_of_tokens(const Assignment& assigned, const std::vector<int64_t>& tokens,
                                   int width, RowsOf&& rows_of) {
  std::map<int32_t, std::vector<int64_t>> rows_of_expert;
  std::map<int64_t, double*> out_of_token;
  // Sums of at most 16 bf16 values: in double their order does not show.
  std::vector<double> out(tokens.size() * static_cast<size_t>(width));
  for (size_t i = 0; i < tokens.size(); ++i) {
    out_of_token[tokens[i]] = out.data() + i * static_cast<size_t>(width);
    for (int64_t r = tokens[i] * assigned.topk; r < (tokens[i] + 1) * assigned.topk; ++r) {
      const int32_t expert = assigned.experts[static_cast<size_t>(r)];
      if (expert >= 0) rows_of_expert[expert].push_back(r);
    }
  }
  for (const auto& [expert, rows] : rows_of_expert) {
    const std::vector<double> y = rows_of(expert, rows);
    const double* from = y.data();
    for (const int64_t r : rows) {
      double* to = out_of_token[r / assigned.topk];
      for (int c = 0; c < width; ++c) to[c] += *from++;
    }
  }
  return out;
}

}  // namespace moegate::check
