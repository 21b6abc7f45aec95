// SPDX-License-Identifier: Apache-2.0
// moe_align on the CPU as a plain counting sort on one thread: count, lay the groups out, place the
// rows in ascending order. The operator's yardstick.
#include <algorithm>

#include "kernels/moe_align/host_align.h"

namespace moegate::moe_align {

/// `next`: an expert's number of rows, then where its next row goes.
void run_counting_sort(const MoeAlignArgs& args, int32_t* next) {
  const MoeAlignShape& shape = args.shape;
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

namespace {

size_t workspace(const Case& c, const DeviceFacts&) {
  return static_cast<size_t>(MoeAlignShape::of(c).experts) * sizeof(int32_t);
}

const Kernel<MoeAlign> kernel({.name = "counting_sort",
                               .backend = Backend::host,
                               .help = "count, lay out, place: one thread, rows in order",
                               .launch =
                                   [](MoeAlign& problem, const Launch&) {
                                     run_counting_sort(problem.args(),
                                                       problem.workspace<int32_t>());
                                   },
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::moe_align
