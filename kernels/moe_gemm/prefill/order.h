// SPDX-License-Identifier: Apache-2.0
// Which tile of the output comes when, and which columns its two products have. Plain code, which
// prefill's kernel and tests on the host share.
#pragma once

#include "harness/kernel/kernel.h"

namespace moegate::moe_gemm::prefill {

constexpr int kTokens = 128;  // routed rows of a tile
constexpr int kHalfTokens = kTokens / 2;
constexpr int kColumns = 256;         // of a tile: rows of weights
constexpr int kProductColumns = 128;  // of each of its two products

constexpr int kFewColumns = 16;  // of tiles: eight blocks of rows are under way side by side
constexpr int kStrip = 16;       // blocks of rows

struct Place {
  int row, column;  // the first ones; the latter as if a tile's columns were next to each other
  int halves;       // of a block of rows: both, or the one from `row` on

  MOEGATE_HD int block() const { return row / kTokens; }
};

/// Where the columns of a tile's two products begin: next to each other, or gates and their ups.
struct ProductColumns {
  int first, second;

  MOEGATE_HD static ProductColumns next_to_each_other(const Place& place) {
    return {place.column, place.column + kProductColumns};
  }
  /// Of [gate | up], n columns.
  MOEGATE_HD static ProductColumns gate_with_up(const Place& place, int n) {
    return {place.column / 2, n / 2 + place.column / 2};
  }
};

/// Tiles of so many blocks of rows and of columns: across the columns first, so that tiles which
/// are under way side by side find each other's rows and weights in L2. Where an expert's weights
/// are too many columns for that, in strips of kStrip blocks: down a strip's rows, then across its
/// columns. Or down all rows first. The blocks of a cluster of two have neighbouring blocks of rows
/// and the same columns. Where a last round would be for up to half of the clusters, two take the
/// halves of a tile's rows.
template <int kCluster, bool kRowsFirst>
struct TileOrder {
  int blocks, columns, whole;  // the last: tiles of a cluster that come in one piece

  /// `clusters` work side by side; 1: no tile is divided.
  MOEGATE_HD TileOrder(int blocks, int columns, int clusters) : blocks(blocks), columns(columns) {
    const int tiles = groups() * columns, last = tiles % clusters;
    whole = 2 * last <= clusters ? tiles - last : tiles;
  }
  MOEGATE_HD int groups() const { return (blocks + kCluster - 1) / kCluster; }
  /// Tiles of a cluster, of which those beyond `whole` are halves.
  MOEGATE_HD int all() const { return 2 * groups() * columns - whole; }
  /// Groups of a strip.
  MOEGATE_HD int height() const {
    if (kRowsFirst) return groups();
    return columns > kFewColumns ? kStrip / kCluster : 1;
  }
  /// The tile of block `rank` of a cluster. The last of an odd number of blocks has a neighbour
  /// that is not there.
  MOEGATE_HD Place get(int index, int rank) const {
    const int half = index < whole ? 0 : index - whole;  // which one, beyond the whole ones
    const int tile = index - (half + 1) / 2;
    const int first = tile / (height() * columns) * height();
    const int left = groups() - first, rows = height() < left ? height() : left;
    const int in_strip = tile - first * columns, column = in_strip / rows;
    const int block = (first + in_strip - column * rows) * kCluster + rank;
    return {block * kTokens + half % 2 * kHalfTokens, column * kColumns, index < whole ? 2 : 1};
  }
};

}  // namespace moegate::moe_gemm::prefill
