// SPDX-License-Identifier: Apache-2.0
// How stream_k cuts a dense GEMM into equal shares, and where their partial sums go. A cluster's
// tile is 192 columns times the rows of its one to three blocks, which share the weights; lanes of
// clusters have other rows. The units of a lane's work, tile by tile and expert by expert in each,
// are dealt to its clusters in runs of equal length, which begin and end anywhere within a tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2::stream_k {

/// Of a block's tile of 128 or 64 rows.
MOEGATE_HD constexpr int tile_columns(int rows) {
  return rows == 128 ? 192 : 256;
}

/// A run of experts [first, last) of one tile: partial sums of which a block makes one set.
struct Segment {
  int tile, first, last;
};

struct Plan {
  int rows;      // of a block's tile: 64 or 128
  int blocks;    // of a cluster
  int lanes;     // clusters that work side by side on other rows with the same weights
  int clusters;  // of a lane, at work
  int tiles;     // of a lane
  int experts;

  MOEGATE_HD int64_t units() const { return int64_t{tiles} * experts; }
  /// The first unit of a cluster's run; of one too many, the end.
  MOEGATE_HD int64_t begin(int cluster) const { return units() * cluster / clusters; }
  MOEGATE_HD int cluster_of(int64_t unit) const {
    return static_cast<int>(((unit + 1) * clusters - 1) / units());
  }
  /// The segment that starts at `unit` and ends before `end`.
  MOEGATE_HD Segment segment(int64_t unit, int64_t end) const {
    const auto tile = static_cast<int>(unit / experts);
    const auto first = static_cast<int>(unit % experts);
    const auto left = end - unit;
    return {tile, first, left < experts - first ? first + static_cast<int>(left) : experts};
  }
  MOEGATE_HD int columns() const { return tile_columns(rows); }
  /// Of a stage's weights, what each block of a cluster copies.
  MOEGATE_HD int weight_copy() const { return columns() / blocks; }
  /// First row and column of a block's tile.
  MOEGATE_HD int first_row(int lane, int rank) const { return (lane * blocks + rank) * rows; }
  MOEGATE_HD int first_column(int tile) const { return tile * columns(); }
  /// Of the partial sums [slots, rows, columns] of a cluster's tile and a rank's block. Clusters
  /// and tiles only rise along the units, so that no two segments have the same sum of both.
  MOEGATE_HD int64_t slot(int lane, int cluster, int tile, int rank) const {
    return (int64_t{lane} * (clusters + tiles - 1) + cluster + tile) * blocks + rank;
  }
  int64_t slots() const { return slot(lanes, 0, 0, 0); }
};

/// `resident(rows, blocks)` says how many clusters the device holds at once.
template <class Resident>
Plan make_plan(const DenseFc2Shape& s, const Resident& resident) {
  Plan plan{};
  plan.rows = s.tokens <= 64 ? 64 : 128;
  plan.experts = s.experts;
  const int row_tiles = (s.tokens + plan.rows - 1) / plan.rows;
  const int column_tiles = (s.hidden + plan.columns() - 1) / plan.columns();
  const auto groups_of = [](int tiles, int blocks) { return (tiles + blocks - 1) / blocks; };
  // Clusters of three where that leaves fewer tiles without a row.
  plan.blocks = row_tiles == 1                                              ? 1
                : groups_of(row_tiles, 3) * 3 < groups_of(row_tiles, 2) * 2 ? 3
                                                                            : 2;
  plan.lanes = groups_of(row_tiles, plan.blocks);
  plan.tiles = column_tiles;
  plan.clusters = static_cast<int>(
      std::clamp<int64_t>(resident(plan.rows, plan.blocks) / plan.lanes, 1, plan.units()));
  return plan;
}

}  // namespace moegate::dense_fc2::stream_k
