// SPDX-License-Identifier: Apache-2.0
// topk_sort on the CPU as the public chain does it: select into intermediate arrays, counting sort
// by expert, clear the output buffer; three passes with a barrier between them. The operator's
// yardstick.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/topk_sort/host_select.h"

namespace moegate::topk_sort {
namespace {

/// The intermediate arrays of the chain, in the workspace: ids [T, k], then weights [T, k].
size_t workspace(const Case& c, const DeviceFacts&) {
  const auto shape = TopkSortShape::of(c);
  return static_cast<size_t>(shape.tokens) * static_cast<size_t>(shape.topk) *
         (sizeof(int32_t) + sizeof(float));
}

void select_all(const TopkSortArgs& args, int32_t* ids, float* weights) {
  const int k = args.shape.topk;
#pragma omp parallel for schedule(static) if (args.shape.tokens >= 8)
  for (int t = 0; t < args.shape.tokens; ++t) {
    const Choice choice = select(args, t);
    for (int j = 0; j < k; ++j) {
      ids[int64_t{t} * k + j] = choice.experts[static_cast<size_t>(j)];
      weights[int64_t{t} * k + j] = choice.weights[static_cast<size_t>(j)];
    }
  }
}

void sort_by_expert(const TopkSortArgs& args, const int32_t* ids, const float* weights) {
  const TopkSortShape& shape = args.shape;
  const int64_t rows = int64_t{shape.tokens} * shape.topk;
  std::array<int32_t, kMaxExperts> count{}, next;
  for (int64_t r = 0; r < rows; ++r) ++count[static_cast<size_t>(ids[r])];
  int32_t end = 0;
  for (int e = 0; e < shape.experts; ++e) {
    const auto i = static_cast<size_t>(e);
    const int32_t blocks = (count[i] + shape.unit - 1) / shape.unit;
    std::fill_n(args.sorted_expert_ids + end / shape.unit, blocks, e);
    next[i] = end;
    end += blocks * shape.unit;
    const int32_t filled = next[i] + count[i];
    std::fill(args.sorted_ids + filled, args.sorted_ids + end, shape.topk << 24 | shape.tokens);
    std::fill(args.sorted_weights + filled, args.sorted_weights + end, 0.0f);
  }
  for (int32_t t = 0; t < shape.tokens; ++t) {
    for (int32_t j = 0; j < shape.topk; ++j) {
      const int64_t row = int64_t{t} * shape.topk + j;
      const int32_t at = next[static_cast<size_t>(ids[row])]++;
      args.sorted_ids[at] = j << 24 | t;
      args.sorted_weights[at] = weights[row];
    }
  }
  args.num_valid[0] = end;
  args.num_valid[1] = shape.tokens;
}

void clear(const TopkSortArgs& args) {
  const int64_t row = int64_t{args.shape.hidden} * 2;
  auto* buffer = static_cast<char*>(args.moe_buf);
#pragma omp parallel for schedule(static) if (args.shape.tokens >= 8)
  for (int t = 0; t < args.shape.tokens; ++t) {
    std::memset(buffer + t * row, 0, static_cast<size_t>(row));
  }
}

void launch(TopkSort& problem, const Launch&) {
  const TopkSortArgs args = problem.args();
  auto* ids = problem.workspace<int32_t>();
  auto* weights = reinterpret_cast<float*>(ids + int64_t{args.shape.tokens} * args.shape.topk);
  select_all(args, ids, weights);
  sort_by_expert(args, ids, weights);
  clear(args);
}

const Kernel<TopkSort> kernel({.name = "chain",
                               .backend = Backend::host,
                               .help = "select, then counting sort, then clear: three passes",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::topk_sort
