// SPDX-License-Identifier: Apache-2.0
// Which cut of a grouped GEMM suits a shape. The unit of cost is what an SM takes for one slice of
// K of a tile of 128 columns for each of two blocks that it holds: SMs that have work share the
// memory's bandwidth evenly, so that the one with the most slices is the last.
#include <algorithm>
#include <cmath>

#include "kernels/moe_gemm/swap_ab/swap_ab.h"

namespace moegate::moe_gemm::swap_ab {
namespace {

// Such that the choice is the fastest cut, or within 4 % of it, of all that `moegate tune` measured
// on an H200 for gate-up of DeepSeek-R1 (TP8) and Qwen3-30B at T = 1 to 128. One block per SM with
// twice the stages, another cut that was compiled then, never won. For gpt-oss-120b in bf16
// likewise at T = 1 and 128, measured with three narrow tiles per SM.
/// What a tile's exchange of sums costs for each block of the cluster that it waits for.
constexpr double kExchange = 0.5;
/// Tiles of 64 columns copy the routed rows and wait for stages twice as often; in bf16 three of
/// them on an SM make up for that (down at one token 18.7 us, as wide ones 19.4).
constexpr double kNarrowFp8 = 1.13, kNarrowBf16 = 0.97;

double cost(const MoeGemmShape& s, const SwapAbTile& tile, int processors, int resident) {
  const double tiles =
      std::ceil(expected_row_blocks(s)) * ((s.n + tile.columns - 1) / tile.columns);
  resident = std::max(resident, 1);
  const double rounds = std::ceil(tiles / resident);
  const int slices = (s.k_slices() + tile.splits - 1) / tile.splits;
  // Of an SM; blocks go to idle ones first.
  const double held = std::min(std::ceil(tiles * tile.splits / processors),
                               std::ceil(1.0 * resident * tile.splits / processors));
  const double narrow = 0.5 * (s.scaled() ? kNarrowFp8 : kNarrowBf16);
  const double slice = (tile.columns == 128 ? 1 : narrow) * held / 2;
  return rounds * (slices * slice + (tile.splits > 1 ? kExchange * tile.splits : 0));
}

}  // namespace

std::string text(const SwapAbTile& tile) {
  return fmt::format("columns={}/splits={}", tile.columns, tile.splits);
}

std::vector<SwapAbTile> swap_ab_tiles(const MoeGemmShape& shape) {
  if (shape.block > 32) return {{128, 1}};
  std::vector<SwapAbTile> tiles;
  for (const int splits : {1, 2, 4, 8}) {
    for (const int columns : {128, 64}) {
      // Every block of a cluster has a slice, and 16 columns of the sums to add up.
      if (splits > shape.k_slices() || columns / splits < 16) continue;
      tiles.push_back({columns, splits});
    }
  }
  return tiles;
}

double expected_row_blocks(const MoeGemmShape& s) {
  const double rows = s.rows(), experts = s.experts;
  const double active = experts * (1 - std::pow(1 - 1 / experts, rows));
  // An expert with many rows fills half of its last block.
  return std::min(std::max(active, rows / s.block + active / 2),
                  static_cast<double>(s.capacity() / s.block));
}

SwapAbTile choose_swap_ab_tile(const MoeGemmShape& shape, const std::vector<SwapAbTile>& tiles,
                               int processors, const ResidentClusters& resident) {
  const auto cost_of = [&](const SwapAbTile& tile) {
    return cost(shape, tile, processors, resident(tile));
  };
  SwapAbTile best = tiles.front();
  for (const SwapAbTile& tile : tiles) {
    if (cost_of(tile) < cost_of(best)) best = tile;
  }
  return best;
}

}  // namespace moegate::moe_gemm::swap_ab
