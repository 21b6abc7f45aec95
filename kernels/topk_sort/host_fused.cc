// SPDX-License-Identifier: Apache-2.0
// topk_sort on the CPU in one parallel region with one barrier: every thread selects for its run of
// tokens, counts as it goes and clears its share of the output buffer; after the barrier each thread
// works out where its tokens go from everybody's counts and writes them. The chain's second reading of
// all ids, its second parallel region and its serial sort are gone.
#include <omp.h>

#include <cstring>

#include "kernels/topk_sort/host_select.h"

namespace moegate {
namespace {

using topk_sort_host::Choice;
using topk_sort_host::kMaxExperts;

constexpr int kMaxThreads = 256;
constexpr int kTokensPerThread = 8;  // fewer are done sooner than another thread is reached

using Counts = std::array<int32_t, kMaxExperts>;

/// Each thread's counts, read by the others after the barrier. Static, because a thread's stack may be gone
/// by then; launches of a process follow one another.
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
    const Choice choice = topk_sort_host::select(args, t);
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

/// First row of this thread's tokens for every expert. The thread that comes last also knows where every
/// expert's tokens end, and writes the padding and the block list.
Counts place_experts(const TopkSortArgs& args, int me, int threads) {
  const TopkSortShape& shape = args.shape;
  const bool last = me == threads - 1;
  Counts next;
  int32_t start = 0;
  for (int e = 0; e < shape.experts; ++e) {
    const auto i = static_cast<size_t>(e);
    int32_t before = 0, count = 0;
    for (int thread = 0; thread < threads; ++thread) {
      if (thread == me) before = count;
      count += counts_of[static_cast<size_t>(thread)][i];
    }
    next[i] = start + before;
    if (count == 0) continue;
    const int32_t blocks = (count + shape.unit - 1) / shape.unit;
    if (last) {
      std::fill_n(args.sorted_expert_ids + start / shape.unit, blocks, e);
      const int32_t padding = blocks * shape.unit - count;
      std::fill_n(args.sorted_ids + start + count, padding, shape.topk << 24 | shape.tokens);
      std::fill_n(args.sorted_weights + start + count, padding, 0.0f);
    }
    start += blocks * shape.unit;
  }
  if (last) {
    args.num_valid[0] = start;
    args.num_valid[1] = shape.tokens;
  }
  return next;
}

void place_tokens(const TopkSortArgs& args, const Waiting& waiting, int first, int last,
                  Counts next) {
  const int k = args.shape.topk;
  for (int t = first; t < last; ++t) {
    for (int j = 0; j < k; ++j) {
      const int64_t row = int64_t{t} * k + j;
      const int32_t at = next[static_cast<size_t>(waiting.ids[row])]++;
      args.sorted_ids[at] = j << 24 | t;
      args.sorted_weights[at] = waiting.weights[row];
    }
  }
}

void launch(TopkSort& problem, const Launch& where) {
  const TopkSortArgs args = problem.args();
  const int tokens = args.shape.tokens;
  auto* ids = problem.workspace<int32_t>();
  const Waiting waiting{ids, reinterpret_cast<float*>(ids + int64_t{tokens} * args.shape.topk)};
  const int wanted = std::clamp(tokens / kTokensPerThread, 1,
                                std::min(where.device.processors, kMaxThreads));
#pragma omp parallel num_threads(wanted) if (wanted > 1)
  {
    const int threads = omp_get_num_threads(), me = omp_get_thread_num();
    const auto share = [&](int i) { return static_cast<int>(int64_t{tokens} * i / threads); };
    select_tokens(args, waiting, share(me), share(me + 1), counts_of[static_cast<size_t>(me)]);
#pragma omp barrier
    const Counts next = place_experts(args, me, threads);
    place_tokens(args, waiting, share(me), share(me + 1), next);
  }
}

const Kernel<TopkSort> kernel({.name = "fused",
                               .backend = Backend::host,
                               .help = "select and count, one barrier, place: one parallel region",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate
