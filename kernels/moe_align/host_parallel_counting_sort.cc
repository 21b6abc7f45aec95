// SPDX-License-Identifier: Apache-2.0
// moe_align on the CPU in one parallel region with one barrier: every thread counts the experts of
// its run of rows; after the barrier each works out from everybody's counts where its own rows go
// and places them, and pads its share of the experts. The output is the same for any number of
// threads.
//
// Measured with 2 threads of an AMD EPYC (cold, 4 processes, k = 8, BM = 64; the machine was busy
// and every row noisy), time of counting_sort over its own: E = 128, T = 4096 1.26; E = 256, T =
// 8192 and 16384 0.76 and 0.79, so it loses there; one thread, T = 64, 0.88 to 0.91. Threads whose
// runs of an expert are shorter than some cache lines hand those lines to and fro: E = 256, T =
// 1024 in two threads was 0.34.
#include <omp.h>

#include <algorithm>

#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {
namespace {

/// A thread's share, at least: fewer rows are done sooner than another thread is reached, and fewer
/// of an expert share most of their cache lines with other threads.
constexpr int kRowsPerThread = 2048, kRowsPerExpert = 128;

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
void lay_out(MoeAlignArgs args, int32_t* workspace, int me, int threads) {
  const MoeAlignShape& shape = args.shape;
  const Tables own = tables_of(shape, workspace, me);
  int32_t end = 0, mine = me;  // the next expert whose padding and blocks are this thread's
  for (int32_t expert = 0; expert < shape.experts; ++expert) {
    int32_t rows = 0;
    for (int t = 0; t < threads; ++t) {
      if (t == me) own.next[expert] = end + rows;
      rows += tables_of(shape, workspace, t).rows[expert];
    }
    const int32_t blocks = (rows + shape.block - 1) / shape.block, begin = end;
    end += blocks * shape.block;
    if (expert != mine) continue;
    mine += threads;
    std::fill_n(args.expert_ids + begin / shape.block, blocks, expert);
    std::fill(args.sorted_token_ids + begin + rows, args.sorted_token_ids + end, shape.rows());
  }
  if (me == 0) *args.num_tokens_post_padded = end;
}

/// A thread's run of rows.
struct Run {
  int32_t first, end;
};

// Arguments by value: the compiler then knows that no store changes them.
void count_rows(const int32_t* ids, MoeAlignShape shape, Run run, int32_t* rows) {
  std::fill_n(rows, shape.experts, 0);
  for (int32_t row = run.first; row < run.end; ++row) {
    if (shape.has(ids[row])) ++rows[ids[row]];
  }
}

void place_rows(MoeAlignArgs args, Run run, int32_t* next) {
  for (int32_t row = run.first; row < run.end; ++row) {
    const int32_t expert = args.topk_ids[row];
    if (args.shape.has(expert)) args.sorted_token_ids[next[expert]++] = row;
  }
}

void align_run(const MoeAlignArgs& args, int32_t* workspace, int me, int threads) {
  const auto share = [&](int i) {
    return static_cast<int32_t>(int64_t{args.shape.rows()} * i / threads);
  };
  const Run run{share(me), share(me + 1)};
  const Tables own = tables_of(args.shape, workspace, me);
  count_rows(args.topk_ids, args.shape, run, own.rows);
#pragma omp barrier
  lay_out(args, workspace, me, threads);
  place_rows(args, run, own.next);
}

void launch(MoeAlign& problem, const Launch& where) {
  const MoeAlignArgs args = problem.args();
  auto* workspace = problem.workspace<int32_t>();
  const int least = std::max(kRowsPerThread, kRowsPerExpert * args.shape.experts);
  const int wanted = std::clamp(args.shape.rows() / least, 1, where.device.processors);
  if (wanted == 1) return align_run(args, workspace, 0, 1);
#pragma omp parallel num_threads(wanted)
  align_run(args, workspace, omp_get_thread_num(), omp_get_num_threads());
}

const Kernel<MoeAlign> kernel({.name = "parallel_counting_sort",
                               .backend = Backend::host,
                               .help = "threads count, one barrier, threads place; rows in order",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::moe_align
