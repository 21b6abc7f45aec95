// SPDX-License-Identifier: Apache-2.0
// The truth of moe_align: a list of rows per expert, written out one after the other. No variant
// shares a line with it.
#include <map>

#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {

MoeAlignTruth moe_align_truth(const MoeAlignShape& shape, const std::vector<int32_t>& topk_ids) {
  std::map<int32_t, std::vector<int32_t>> rows_of;  // by expert
  for (size_t row = 0; row < topk_ids.size(); ++row) {
    const int32_t expert = topk_ids[row];
    if (expert < 0 || expert >= shape.experts) continue;
    rows_of[expert].push_back(static_cast<int32_t>(row));
  }
  const auto block = static_cast<size_t>(shape.block);
  const int32_t padding = shape.tokens * shape.topk;
  MoeAlignTruth truth;
  for (auto& [expert, rows] : rows_of) {
    while (rows.size() % block != 0) rows.push_back(padding);
    truth.sorted_token_ids.insert(truth.sorted_token_ids.end(), rows.begin(), rows.end());
    truth.expert_ids.insert(truth.expert_ids.end(), rows.size() / block, expert);
  }
  truth.num_tokens_post_padded = {static_cast<int32_t>(truth.sorted_token_ids.size())};
  return truth;
}

}  // namespace moegate::moe_align
