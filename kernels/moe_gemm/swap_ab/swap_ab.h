// SPDX-License-Identifier: Apache-2.0
// The ways in which swap_ab cuts a grouped GEMM into the work of thread blocks, and which of them
// suits a shape. Plain host code; the kernels are in swap_ab.cu.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::swap_ab {

struct SwapAbTile {
  int columns = 128;  // of the output, of one tile: 64 or 128
  int splits = 1;     // parts of K, for the blocks of a cluster: 1, 2, 4 or 8

  bool operator==(const SwapAbTile&) const = default;
};

/// "columns=64/splits=4"
std::string text(const SwapAbTile& tile);

/// All that are compiled for the shape's block and fit its K; those without splits first.
std::vector<SwapAbTile> swap_ab_tiles(const MoeGemmShape& shape);

/// How many clusters (without splits: blocks) of a tile an idle GPU holds at once.
using ResidentClusters = std::function<int(const SwapAbTile&)>;

/// The one of `tiles` whose busiest SM should be done first, by the number of blocks of rows that
/// uniform routing leads to: the host does not know the routing itself.
SwapAbTile choose_swap_ab_tile(const MoeGemmShape& shape, const std::vector<SwapAbTile>& tiles,
                               int processors, const ResidentClusters& resident);

/// Blocks of rows expected of uniform routing.
double expected_row_blocks(const MoeGemmShape& shape);

/// Launches one of swap_ab_tiles(shape); in builds with CUDA.
void launch_swap_ab(const MoeGemmArgs& args, const SwapAbTile& tile, const Launch& where);

}  // namespace moegate::moe_gemm::swap_ab
