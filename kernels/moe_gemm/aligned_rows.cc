// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/aligned_rows.h"

#include <algorithm>

namespace moegate::moe_gemm {

int64_t aligned_capacity(int64_t rows, int experts, int block) {
  const int64_t each_expert_pads = rows + int64_t{experts} * (block - 1);
  return rows < experts ? std::min(each_expert_pads, rows * block) : each_expert_pads;
}

AlignedRows align_rows(std::span<const int32_t> ids, int experts, int block) {
  const auto rows = static_cast<int32_t>(ids.size());
  const int64_t capacity = aligned_capacity(rows, experts, block);
  AlignedRows aligned;
  aligned.sorted_token_ids.assign(static_cast<size_t>(capacity), rows);
  aligned.expert_ids.assign(static_cast<size_t>((capacity + block - 1) / block), -1);
  std::vector<std::vector<int32_t>> of_expert(static_cast<size_t>(experts));
  for (int32_t r = 0; r < rows; ++r) {
    of_expert[static_cast<size_t>(ids[static_cast<size_t>(r)])].push_back(r);
  }
  int32_t next = 0;
  for (int e = 0; e < experts; ++e) {
    const auto& group = of_expert[static_cast<size_t>(e)];
    std::copy(group.begin(), group.end(), aligned.sorted_token_ids.begin() + next);
    const auto blocks = (static_cast<int32_t>(group.size()) + block - 1) / block;
    std::fill_n(aligned.expert_ids.begin() + next / block, blocks, e);
    next += blocks * block;
  }
  aligned.padded_rows = next;
  return aligned;
}

std::vector<int32_t> sorted_places(const AlignedRows& aligned, int64_t rows) {
  std::vector<int32_t> places(static_cast<size_t>(rows));
  for (int32_t place = 0; place < aligned.padded_rows; ++place) {
    const int32_t r = aligned.sorted_token_ids[static_cast<size_t>(place)];
    if (r < rows) places[static_cast<size_t>(r)] = place;
  }
  return places;
}

}  // namespace moegate::moe_gemm
