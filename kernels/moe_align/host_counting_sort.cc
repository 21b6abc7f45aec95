// SPDX-License-Identifier: Apache-2.0
// moe_align on the CPU as a plain counting sort on one thread: count, lay the groups out, place the
// rows in ascending order. The operator's yardstick.
#include <algorithm>

#include "kernels/moe_align/moe_align.h"

namespace moegate {
namespace {

/// One place per expert: its number of rows, then where its next row goes.
size_t workspace(const Case& c, const DeviceFacts&) {
  return static_cast<size_t>(MoeAlignShape::of(c).experts) * sizeof(int32_t);
}

void launch(MoeAlign& problem, const Launch&) {
  const MoeAlignArgs args = problem.args();
  const MoeAlignShape& shape = args.shape;
  auto* next = problem.workspace<int32_t>();
  std::fill_n(next, shape.experts, 0);
  for (int row = 0; row < shape.rows(); ++row) {
    if (shape.has(args.topk_ids[row])) ++next[args.topk_ids[row]];
  }
  int32_t end = 0;
  for (int32_t expert = 0; expert < shape.experts; ++expert) {
    const int32_t rows = next[expert], blocks = (rows + shape.block - 1) / shape.block;
    std::fill_n(args.expert_ids + end / shape.block, blocks, expert);
    next[expert] = end;
    end += blocks * shape.block;
    std::fill(args.sorted_token_ids + next[expert] + rows, args.sorted_token_ids + end,
              shape.rows());
  }
  for (int32_t row = 0; row < shape.rows(); ++row) {
    if (shape.has(args.topk_ids[row])) args.sorted_token_ids[next[args.topk_ids[row]]++] = row;
  }
  *args.num_tokens_post_padded = end;
}

const Kernel<MoeAlign> kernel({.name = "counting_sort",
                               .backend = Backend::host,
                               .help = "count, lay out, place: one thread, rows in order",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate
