// SPDX-License-Identifier: Apache-2.0
// Which tile of the output comes when, and which columns its two products have. Plain code, which
// prefill's kernel and tests on the host share.
#pragma once

#include "harness/kernel/kernel.h"

namespace moegate::moe_gemm::prefill {

constexpr int kTokens = 128;          // routed rows of a tile
constexpr int kColumns = 256;         // of a tile: rows of weights
constexpr int kProductColumns = 128;  // of each of its two products

struct Place {
  int block, column;  // the latter as if a tile's columns were next to each other
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

/// Tiles of so many blocks of rows and of columns, across the columns first or down the rows first.
/// Blocks of rows of one expert are near each other and find its weights in L2. The blocks of a
/// cluster of two have neighbouring blocks of rows and the same columns.
template <int kCluster, bool kRowsFirst>
struct TileOrder {
  int blocks, columns;

  MOEGATE_HD int groups() const { return (blocks + kCluster - 1) / kCluster; }
  /// Tiles of a cluster.
  MOEGATE_HD int all() const { return groups() * columns; }
  /// The tile of block `rank` of a cluster. The last of an odd number of blocks has a neighbour
  /// that is not there.
  MOEGATE_HD Place get(int index, int rank) const {
    const int inner = kRowsFirst ? groups() : columns, outer = index / inner;
    const int group = kRowsFirst ? index - outer * inner : outer;
    const int column = kRowsFirst ? outer : index - outer * inner;
    return {group * kCluster + rank, column * kColumns};
  }
};

}  // namespace moegate::moe_gemm::prefill
