// SPDX-License-Identifier: Apache-2.0
// moe_align on the CPU in one parallel region with one barrier: every thread counts the experts of
// its run of rows; after the barrier each works out from everybody's counts where its own rows go
// and places them, and pads its share of the experts. The output is the same for any number of
// threads.
#include <omp.h>

#include <algorithm>

#include "kernels/moe_align/moe_align.h"

namespace moegate {
namespace {

constexpr int kRowsPerThread = 2048;  // fewer are done sooner than another thread is reached

/// Two tables of one thread: rows per expert, which the others read, and where its own next go.
struct Tables {
  int32_t* rows;
  int32_t* next;
};

Tables tables_of(const MoeAlignShape& shape, int32_t* workspace, int thread) {
  int32_t* rows = workspace + int64_t{thread} * 2 * shape.experts;
  return {rows, rows + shape.experts};
}

size_t workspace(const Case& c, const DeviceFacts& device) {
  return static_cast<size_t>(device.processors) * 2 *
         static_cast<size_t>(MoeAlignShape::of(c).experts) * sizeof(int32_t);
}

/// Where this thread's rows go; it writes the padding and the blocks of every `threads`-th expert.
void lay_out(const MoeAlignArgs& args, int32_t* workspace, int me, int threads) {
  const MoeAlignShape& shape = args.shape;
  const Tables own = tables_of(shape, workspace, me);
  int32_t end = 0;
  for (int32_t expert = 0; expert < shape.experts; ++expert) {
    int32_t rows = 0;
    for (int t = 0; t < threads; ++t) {
      if (t == me) own.next[expert] = end + rows;
      rows += tables_of(shape, workspace, t).rows[expert];
    }
    const int32_t blocks = (rows + shape.block - 1) / shape.block, begin = end;
    end += blocks * shape.block;
    if (expert % threads != me) continue;
    std::fill_n(args.expert_ids + begin / shape.block, blocks, expert);
    std::fill(args.sorted_token_ids + begin + rows, args.sorted_token_ids + end, shape.rows());
  }
  if (me == 0) *args.num_tokens_post_padded = end;
}

void launch(MoeAlign& problem, const Launch& where) {
  const MoeAlignArgs args = problem.args();
  const MoeAlignShape& shape = args.shape;
  auto* workspace = problem.workspace<int32_t>();
  const int wanted = std::clamp(shape.rows() / kRowsPerThread, 1, where.device.processors);
#pragma omp parallel num_threads(wanted) if (wanted > 1)
  {
    const int threads = omp_get_num_threads(), me = omp_get_thread_num();
    const auto share = [&](int i) { return static_cast<int>(int64_t{shape.rows()} * i / threads); };
    const Tables own = tables_of(shape, workspace, me);
    std::fill_n(own.rows, shape.experts, 0);
    for (int row = share(me); row < share(me + 1); ++row) {
      if (shape.has(args.topk_ids[row])) ++own.rows[args.topk_ids[row]];
    }
#pragma omp barrier
    lay_out(args, workspace, me, threads);
    for (int32_t row = share(me); row < share(me + 1); ++row) {
      const int32_t expert = args.topk_ids[row];
      if (shape.has(expert)) args.sorted_token_ids[own.next[expert]++] = row;
    }
  }
}

const Kernel<MoeAlign> kernel({.name = "parallel_counting_sort",
                               .backend = Backend::host,
                               .help = "threads count, one barrier, threads place; rows in order",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate
