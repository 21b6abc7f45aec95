// SPDX-License-Identifier: Apache-2.0
// split_k4: which tiles of logits it takes, and over how many blocks the four parts of their K go.
#pragma once

#include <functional>

#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {

constexpr int kQuarters = 4;  // parts of K
constexpr int kStepK = 128;   // parts begin with one
constexpr int kPair = 2;      // blocks of a cluster where none shares a tile

/// A tile, how many blocks share it, and what a wave of such takes on an H200: ns for the launch
/// and the sums, and for each step.
struct SplitPlan {
  int tokens, experts;
  int blocks;
  int start_ns = 0, step_ns = 0;

  int expert_tiles(const RouterGemmShape& shape) const {
    return (shape.experts + experts - 1) / experts;
  }
  int token_tiles(const RouterGemmShape& shape) const {
    return (shape.tokens + tokens - 1) / tokens;
  }
  /// Blocks of a cluster: those of a tile, or neighbours of the same tokens, or else of the same
  /// experts.
  int size() const { return blocks > 1 ? blocks : kPair; }
  bool same_tokens(const RouterGemmShape& shape) const {
    return blocks == 1 && expert_tiles(shape) % kPair == 0;
  }
  /// Clusters along tokens, and along experts.
  int token_clusters(const RouterGemmShape& shape) const {
    const bool pairs = blocks == 1 && !same_tokens(shape);
    return pairs ? (token_tiles(shape) + kPair - 1) / kPair : token_tiles(shape);
  }
  int expert_clusters(const RouterGemmShape& shape) const {
    return same_tokens(shape) ? expert_tiles(shape) / kPair : expert_tiles(shape);
  }
  int clusters(const RouterGemmShape& shape) const {
    return token_clusters(shape) * expert_clusters(shape);
  }
};

/// Those that the kernel is compiled for.
constexpr SplitPlan kSplitPlans[] = {
    {64, 32, 4, 2700, 210},   {64, 64, 4, 3100, 290}, {64, 128, 4, 4000, 340},
    {64, 32, 2, 3500, 260},   {64, 64, 2, 3700, 380}, {64, 128, 2, 4500, 540},
    {64, 32, 1, 3300, 215},   {64, 64, 1, 3900, 245}, {64, 128, 1, 4500, 380},
    {128, 128, 1, 5000, 670},
};

/// How many clusters of a plan an idle GPU holds at once.
using ClustersOf = std::function<int(const SplitPlan&)>;

inline int64_t nanoseconds(const SplitPlan& plan, const RouterGemmShape& shape, int at_once) {
  const int steps = (shape.hidden + kStepK - 1) / kStepK;
  const int waves = (plan.clusters(shape) + at_once - 1) / at_once;
  return waves * (plan.start_ns + int64_t{(steps + plan.blocks - 1) / plan.blocks} * plan.step_ns);
}

/// The plan that is expected to take the least time.
inline SplitPlan plan_split(const RouterGemmShape& shape, const ClustersOf& clusters_at_once) {
  SplitPlan best = kSplitPlans[0];
  int64_t least = INT64_MAX;
  for (const SplitPlan& plan : kSplitPlans) {
    const int at_once = clusters_at_once(plan);
    const int64_t ns = at_once > 0 ? nanoseconds(plan, shape, at_once) : INT64_MAX;
    if (ns < least) least = ns, best = plan;
  }
  return best;
}

/// The launch of a plan, whichever fits the shape: all have the same bits. Asynchronous on
/// `where.stream`; allocates nothing and can be captured into a graph. Errors: Error(internal) when
/// it is refused.
void launch_split(const RouterGemmArgs& args, const SplitPlan& plan, const Launch& where);

}  // namespace moegate::router_gemm
