// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/aligned_rows.h"

#include <algorithm>

#include "harness/kernel/kernel.h"

namespace moegate::moe_gemm {

int64_t aligned_capacity(int64_t rows, int experts, int block) {
  const int64_t each_expert_pads = rows + int64_t{experts} * (block - 1);
  return rows < experts ? std::min(each_expert_pads, rows * block) : each_expert_pads;
}

ListedRows list_rows(std::span<const int32_t> ids, int experts) {
  ListedRows listed{std::vector<int32_t>(static_cast<size_t>(experts)), {}};
  for (size_t r = 0; r < ids.size(); ++r) {
    if (ids[r] < 0) continue;
    ++listed.expert_rows[static_cast<size_t>(ids[r])];
    listed.rows.push_back(static_cast<int32_t>(r));
  }
  std::ranges::stable_sort(listed.rows, {}, [&](int32_t r) { return ids[static_cast<size_t>(r)]; });
  listed.rows.resize(ids.size(), static_cast<int32_t>(ids.size()));
  return listed;
}

AlignedRows align_rows(std::span<const int32_t> ids, int experts, int block) {
  const auto rows = static_cast<int32_t>(ids.size());
  const int64_t capacity = aligned_capacity(rows, experts, block);
  AlignedRows aligned;
  aligned.sorted_token_ids.assign(static_cast<size_t>(capacity), rows);
  aligned.expert_ids.assign(static_cast<size_t>((capacity + block - 1) / block), -1);
  const ListedRows listed = list_rows(ids, experts);
  auto group = listed.rows.begin();
  int32_t next = 0;
  for (int e = 0; e < experts; ++e) {
    const int32_t count = listed.expert_rows[static_cast<size_t>(e)];
    std::copy_n(group, count, aligned.sorted_token_ids.begin() + next);
    group += count;
    const int32_t blocks = (count + block - 1) / block;
    std::fill_n(aligned.expert_ids.begin() + next / block, blocks, e);
    next += blocks * block;
  }
  aligned.padded_rows = next;
  return aligned;
}

std::vector<int32_t> sorted_places(const AlignedRows& aligned, int64_t rows) {
  std::vector<int32_t> places(static_cast<size_t>(rows), -1);
  for (int32_t place = 0; place < aligned.padded_rows; ++place) {
    const int32_t r = aligned.sorted_token_ids[static_cast<size_t>(place)];
    if (r < rows) places[static_cast<size_t>(r)] = place;
  }
  return places;
}

int masked_capacity(std::span<const int32_t> ids, int experts, int tokens) {
  const int most = std::max(1, std::ranges::max(list_rows(ids, experts).expert_rows));
  return (std::min(2 * most, tokens) + kMaskedRows - 1) / kMaskedRows * kMaskedRows;
}

std::vector<int32_t> masked_places(std::span<const int32_t> ids, int experts, int capacity) {
  std::vector<int32_t> used(static_cast<size_t>(experts)), places;
  for (const int32_t e : ids) {
    if (e < 0) {
      places.push_back(-1);
      continue;
    }
    const int32_t row = used[static_cast<size_t>(e)]++;
    if (row == capacity) {
      give_up(Exit::environment,
              "rows = masked: expert {} has more than the {} rows that there is room for; choose a "
              "routing that changes less from seed to seed",
              e, capacity);
    }
    places.push_back(e * capacity + row);
  }
  return places;
}

}  // namespace moegate::moe_gemm
