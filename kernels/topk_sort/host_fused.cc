// SPDX-License-Identifier: Apache-2.0
// topk_sort on the CPU in one parallel region with one barrier: every thread selects for its run of
// tokens, counts as it goes and clears its share of the output buffer; after the barrier each
// thread works out from everybody's counts where its share of the experts goes and writes their
// rows. The chain's second parallel region and its serial sort are gone.
//
// Measured on 2 threads of an AMD EPYC: 0.8 to 0.98 of the chain's time, but 1.05 at E = 256, k =
// 8, T = 64. There selecting is nearly everything, and what both threads repeat (laying out 256
// experts, reading the other's ids across cores) costs more than one thread's sort; without padding
// and clearing it is the same.
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "kernels/topk_sort/host_select.h"

namespace moegate::topk_sort {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kTokensPerThread = 8;  // fewer are done sooner than another thread is reached

using Counts = std::array<int32_t, kMaxExperts>;

/// Each thread's counts, read by the others after the barrier. Static, because a thread's stack may
/// be gone by then; launches of a process follow one another.
std::array<Counts, kMaxThreads> counts_of;

/// A choice as it waits for the barrier: k ids, then k weights, as in the chain's arrays.
size_t workspace(const Case& c, const DeviceFacts&) {
  const auto shape = TopkSortShape::of(c);
  return static_cast<size_t>(shape.tokens) * static_cast<size_t>(shape.topk) *
         (sizeof(int32_t) + sizeof(float));
}

struct Waiting {
  int32_t* ids;    // [T, k]
  float* weights;  // [T, k]
};

void select_tokens(const TopkSortArgs& args, const Waiting& waiting, int first, int last,
                   Counts& counts) {
  const int k = args.shape.topk;
  std::fill_n(counts.begin(), args.shape.experts, 0);
  for (int t = first; t < last; ++t) {
    const Choice choice = select(args, t);
    for (int j = 0; j < k; ++j) {
      const auto slot = static_cast<size_t>(j);
      waiting.ids[int64_t{t} * k + j] = choice.experts[slot];
      waiting.weights[int64_t{t} * k + j] = choice.weights[slot];
      ++counts[static_cast<size_t>(choice.experts[slot])];
    }
  }
  const int64_t row = int64_t{args.shape.hidden} * 2;
  std::memset(static_cast<char*>(args.moe_buf) + first * row, 0,
              static_cast<size_t>((last - first) * row));
}

/// Where every expert's rows start, padded, and how many tokens it has.
struct Layout {
  Counts start, count;
  int32_t rows;  // in all
};

Layout lay_out(const TopkSortShape& shape, int threads) {
  Layout layout;
  layout.rows = 0;
  for (size_t e = 0; e < static_cast<size_t>(shape.experts); ++e) {
    int32_t count = 0;
    for (int t = 0; t < threads; ++t) count += counts_of[static_cast<size_t>(t)][e];
    layout.start[e] = layout.rows;
    layout.count[e] = count;
    layout.rows += (count + shape.unit - 1) / shape.unit * shape.unit;
  }
  return layout;
}

/// Block list and padding of the experts [first, last).
void write_padding(const TopkSortArgs& args, const Layout& layout, size_t first, size_t last) {
  const TopkSortShape& shape = args.shape;
  for (size_t e = first; e < last; ++e) {
    if (layout.count[e] == 0) continue;
    const int32_t start = layout.start[e], blocks = (layout.count[e] + shape.unit - 1) / shape.unit;
    std::fill_n(args.sorted_expert_ids + start / shape.unit, blocks, static_cast<int32_t>(e));
    const int32_t filled = start + layout.count[e], padding = blocks * shape.unit - layout.count[e];
    std::fill_n(args.sorted_ids + filled, padding, shape.topk << 24 | shape.tokens);
    std::fill_n(args.sorted_weights + filled, padding, 0.0f);
  }
}

/// Writes the rows of this thread's share of the experts. By expert and not by token, so that no
/// two threads write to one cache line; every thread reads all ids for that, which is cheap beside
/// selecting.
void place(const TopkSortArgs& args, const Waiting& waiting, int me, int threads) {
  const TopkSortShape& shape = args.shape;
  Layout layout = lay_out(shape, threads);
  const auto boundary = [&](int i) {
    const auto row = static_cast<int32_t>(int64_t{layout.rows} * i / threads);
    const auto* begin = layout.start.data();
    return static_cast<size_t>(std::lower_bound(begin, begin + shape.experts, row) - begin);
  };
  const size_t first = me == 0 ? 0 : boundary(me);
  const size_t last = me == threads - 1 ? static_cast<size_t>(shape.experts) : boundary(me + 1);
  write_padding(args, layout, first, last);
  const int64_t rows = int64_t{shape.tokens} * shape.topk;
  for (int64_t row = 0; row < rows; ++row) {
    const auto e = static_cast<size_t>(waiting.ids[row]);
    if (e < first || e >= last) continue;
    const int32_t at = layout.start[e]++;
    args.sorted_ids[at] = static_cast<int32_t>(row % shape.topk << 24 | row / shape.topk);
    args.sorted_weights[at] = waiting.weights[row];
  }
  if (me == 0) {
    args.num_valid[0] = layout.rows;
    args.num_valid[1] = shape.tokens;
  }
}

void launch(TopkSort& problem, const Launch& where) {
  const TopkSortArgs args = problem.args();
  const int tokens = args.shape.tokens;
  auto* ids = problem.workspace<int32_t>();
  const Waiting waiting{ids, reinterpret_cast<float*>(ids + int64_t{tokens} * args.shape.topk)};
  const int wanted =
      std::clamp(tokens / kTokensPerThread, 1, std::min(where.device.processors, kMaxThreads));
#pragma omp parallel num_threads(wanted) if (wanted > 1)
  {
    const int threads = omp_get_num_threads(), me = omp_get_thread_num();
    const auto share = [&](int i) { return static_cast<int>(int64_t{tokens} * i / threads); };
    select_tokens(args, waiting, share(me), share(me + 1), counts_of[static_cast<size_t>(me)]);
#pragma omp barrier
    place(args, waiting, me, threads);
  }
}

const Kernel<TopkSort> kernel({.name = "fused",
                               .backend = Backend::host,
                               .help = "select and count, one barrier, place: one parallel region",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::topk_sort
