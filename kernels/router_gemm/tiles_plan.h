// SPDX-License-Identifier: Apache-2.0
// Which tiles of logits `tiles` takes, over how many blocks their K is cut, and which of them make
// a cluster.
#pragma once

#include <algorithm>
#include <functional>

#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {

constexpr int kMostBlocks = 16;   // of a cluster
constexpr int kMostWhole = 8;     // of one whose blocks have all of K
constexpr int kAlwaysAtOnce = 2;  // blocks of a cluster, for which any two SMs of a GPC do
constexpr int kSwizzleRows = 8;   // least of a tile's rows that a neighbour brings

/// How many tiles there are of `tile` each.
inline int tiles_of(int all, int tile) {
  return (all + tile - 1) / tile;
}

/// A tile, how many blocks share one, and how many tiles a cluster has.
struct TilePlan {
  int tokens, experts;
  int blocks = 1, expert_tiles = 1, token_tiles = 1;

  bool operator==(const TilePlan&) const = default;
  int tiles_of_experts(const RouterGemmShape& shape) const {
    return tiles_of(shape.experts, experts);
  }
  int tiles_of_tokens(const RouterGemmShape& shape) const { return tiles_of(shape.tokens, tokens); }
  int tiles(const RouterGemmShape& shape) const {
    return tiles_of_experts(shape) * tiles_of_tokens(shape);
  }
  /// Of a cluster, in blocks.
  int size() const { return blocks * expert_tiles * token_tiles; }
  int clusters(const RouterGemmShape& shape) const { return tiles(shape) * blocks / size(); }
};

/// How many clusters of a plan's size an idle GPU holds at once.
using ClustersAtOnce = std::function<int(const TilePlan&)>;

/// Whether waves of so many tiles keep three of four SMs busy.
inline bool fills(int tiles, int processors) {
  return 4 * tiles >= 3 * processors * tiles_of(tiles, processors);
}

/// One block to each of the largest tiles that fill the GPU so, else as many of up to `most` blocks
/// as fit, of the smallest tile for which `most` do. No tile is wider than need be; narrow ones
/// read x too often for all of K.
inline TilePlan tile_of(const RouterGemmShape& shape, int most, int processors) {
  constexpr TilePlan kTiles[] = {{64, 32}, {64, 64}, {64, 128}, {128, 128}};
  int allowed = 1;
  while (allowed < 4 && kTiles[allowed].experts < 2 * shape.experts) ++allowed;
  for (int i = allowed - 1; i >= std::min(1, allowed - 1); --i) {
    if (fills(kTiles[i].tiles(shape), processors)) return kTiles[i];
  }
  int i = 0;
  while (i + 1 < allowed && kTiles[i].tiles(shape) * most > processors) ++i;
  TilePlan plan = kTiles[i];
  plan.blocks = most;
  while (plan.blocks > 1 && plan.tiles(shape) * plan.blocks > processors) plan.blocks /= 2;
  return plan;
}

/// Twice as many neighbours along whichever axis has the larger slices, while a cluster may.
inline TilePlan with_neighbours(TilePlan plan, const RouterGemmShape& shape, int most) {
  while (2 * plan.size() <= most) {
    const int token_rows = plan.tokens / plan.expert_tiles;
    const int expert_rows = plan.experts / plan.token_tiles;
    const bool experts = plan.tiles_of_experts(shape) % (2 * plan.expert_tiles) == 0 &&
                         token_rows / 2 >= kSwizzleRows;
    const bool tokens = plan.tiles_of_tokens(shape) % (2 * plan.token_tiles) == 0 &&
                        expert_rows / 2 >= kSwizzleRows;
    if (!experts && !tokens) break;
    if (experts && (!tokens || token_rows >= expert_rows)) {
      plan.expert_tiles *= 2;
    } else {
      plan.token_tiles *= 2;
    }
  }
  return plan;
}

/// The plan for a GPU with so many processors (SMs): clusters of up to 16 blocks, or 8 where K is
/// not cut, but smaller ones where the GPU has SMs for all clusters and yet does not hold them.
inline TilePlan plan_tiles(const RouterGemmShape& shape, int processors,
                           const ClustersAtOnce& clusters_at_once) {
  for (int most = kMostBlocks;; most /= 2) {
    const TilePlan tile = tile_of(shape, most, processors);
    const TilePlan plan =
        with_neighbours(tile, shape, tile.blocks > 1 ? most : std::min(most, kMostWhole));
    const int clusters = plan.clusters(shape);
    const bool is_one_wave = clusters * plan.size() <= processors;
    if (plan.size() <= kAlwaysAtOnce || !is_one_wave || clusters <= clusters_at_once(plan)) {
      return plan;
    }
  }
}

}  // namespace moegate::router_gemm
