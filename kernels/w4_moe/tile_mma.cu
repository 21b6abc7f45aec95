// SPDX-License-Identifier: Apache-2.0
// The w4 products tile by tile, in the form of vLLM's Marlin kernel: tiles of 128 rows of weights
// by a block of routed rows, mma.sync, weights repacked to fragments, decoded in registers (int4
// scaled there, too, in bf16), rows of x through a ring in shared memory. What other variants
// replace.
//
// It differs from Marlin in two things. Weights go from memory into registers, not through shared
// memory. Tiles are not cut over SMs, so that sums do not depend on the batch. Marlin's own was not
// measured beside it, so that nobody knows yet how close this is.
#include "kernels/cuda/with_rows.cuh"
#include "kernels/w4_moe/tile.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kThreads = 256, kStages = 4;
constexpr int kTilePanels = 8, kWarpPanels = 2;  // of weights: 128 rows, 32 of a warp

/// Of a tile with so many routed rows: four warps along the weights, two along the rows.
template <int kRows>
struct Tile {
  static constexpr int kWarpTiles = kRows / 2 / 8;
  static constexpr int kStageBytes = kRows * kLineBytes;
  static constexpr int kOutBytes = kRows * (kTilePanels * kPanelRows + 8) * 2;
  static constexpr int kSharedBytes =
      kStages * kStageBytes > kOutBytes ? kStages* kStageBytes : kOutBytes;
};

struct TileArgs {
  W4Args args;
  PackedWeights weights;
};

/// Copies of a thread's rows of x into stages: a piece of every 32nd row.
template <int kRows>
struct RowCopies {
  static constexpr int kCopies = (kRows * 8 + kThreads - 1) / kThreads;
  uint32_t from[kCopies];  // where the piece of unit 0 is, in pieces of 8 elements
  uint32_t rows = 0;       // bit i: row i is no padding

  __device__ RowCopies(const W4Shape& shape, const int32_t* ids, int count) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = row_of(i), there = row < count;
      rows |= there << i;
      from[i] = there ? static_cast<uint32_t>(int64_t{shape.source(ids[row])} * shape.k / 8) +
                            threadIdx.x % 8
                      : 0;
    }
  }
  __device__ static int row_of(int i) {
    return static_cast<int>(threadIdx.x) / 8 + i * (kThreads / 8);
  }
  /// Rows of padding are left as they are: their products go nowhere.
  __device__ void start(const W4Args& args, int unit, uint32_t stage) const {
    const int piece = static_cast<int>(threadIdx.x) % 8;
    const bool there = unit * kUnitK + piece * 8 < args.shape.k;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if ((rows >> i & 1) == 0) continue;
      const uint16_t* x = args.x + (there ? int64_t{from[i] + unit * 8u} * 8 : 0);
      copy_async<16>(stage + piece_at(row_of(i), piece), x, there);
    }
  }
};

template <class W>
__device__ Unit<W> load_unit(const uint8_t* unit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Unit<W> u;
  u.codes = __ldg(reinterpret_cast<const uint4*>(unit + lane * 16));
  u.scales = __ldg(reinterpret_cast<const typename W::Scales*>(unit + kUnitCodes) + lane / 4);
  return u;
}

template <int kWarpTiles, bool kWide, class W>
__device__ void multiply_unit(const Unit<W> (&units)[kWarpPanels], uint32_t stage, int first_row,
                              float (&sums)[kWarpPanels][kWarpTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 0; step < kUnitK / 16; ++step) {
    uint32_t a[kWarpPanels][4];
#pragma unroll
    for (int p = 0; p < kWarpPanels; ++p) {
      const uint32_t words[] = {units[p].codes.x, units[p].codes.y, units[p].codes.z,
                                units[p].codes.w};
      uint32_t scales[2];
      W::template scales_of<kWide>(units[p].scales, step / 2, scales);
      W::template decode<kWide>(words[step], scales, a[p]);
    }
#pragma unroll
    for (int j = 0; j < kWarpTiles; j += 2) {
      const int row = first_row + (j + lane / 16) * 8 + lane % 8;
      uint32_t b[4];
      load_matrices(stage + piece_at(row, step * 2 + lane / 8 % 2), b);
#pragma unroll
      for (int p = 0; p < kWarpPanels; ++p) {
        multiply(sums[p][j], a[p], b[0], b[1]);
        multiply(sums[p][j + 1], a[p], b[2], b[3]);
      }
    }
  }
}

/// The tile's outputs to shared memory, and from there to memory.
template <int kRows, class W>
__device__ void write_tile(const W4Args& args, const int32_t* ids, int rows, int expert,
                           int first_panel, uint8_t* shared,
                           const float (&sums)[kWarpPanels][Tile<kRows>::kWarpTiles][4]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int p = 0; p < kWarpPanels; ++p) {
    const PanelOut<W> out(args, expert, first_panel, warp % 4 * kWarpPanels + p,
                          out_pitch(args.shape, kTilePanels), shared);
#pragma unroll
    for (int j = 0; j < Tile<kRows>::kWarpTiles; ++j) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int token = warp / 4 * (kRows / 2) + j * 8 + lane % 4 * 2 + odd;
        if (token >= rows) continue;
        const float weight = args.shape.down ? args.routing_weights[ids[token]] : 1;
        out.put(token, sums[p][j][odd], sums[p][j][odd + 2], weight);
      }
    }
  }
  __syncthreads();
  copy_out<kThreads>(args, ids, rows, first_panel, kTilePanels, shared);
}

/// All of K. `of_warp`: the first unit of its first panel.
template <int kRows, bool kWide, class W>
__device__ void multiply_tile(const W4Args& args, const RowCopies<kRows>& copies,
                              const uint8_t* of_warp, uint32_t stages,
                              float (&sums)[kWarpPanels][Tile<kRows>::kWarpTiles][4]) {
  using T = Tile<kRows>;
  const int units = units_of(args.shape),
            first_row = static_cast<int>(threadIdx.x) / 128 * (kRows / 2);
  const auto load_weights = [&](Unit<W>(&to)[kWarpPanels], int unit) {
#pragma unroll
    for (int p = 0; p < kWarpPanels; ++p) {
      to[p] = load_unit<W>(of_warp + (p * units + min(unit, units - 1)) * W::kUnitBytes);
    }
  };
  Unit<W> weights[2][kWarpPanels];  // of this unit and of the next
  load_weights(weights[0], 0);
  load_weights(weights[1], 1);
  for (int unit = 0; unit < units; unit += 2) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int now = unit + odd, ahead = now + kStages - 1;
      if (now >= units) break;
      wait_copies<kStages - 2>();
      __syncthreads();
      if (ahead < units) {
        copies.start(args, ahead, stages + ahead % kStages * T::kStageBytes);
      }
      commit_copies();
      multiply_unit<T::kWarpTiles, kWide, W>(weights[odd], stages + now % kStages * T::kStageBytes,
                                             first_row, sums);
      load_weights(weights[odd], now + 2);
    }
  }
  wait_all_copies();
  __syncthreads();
}

template <int kRows, class W>
__global__ void __launch_bounds__(kThreads, 2)
    tile_mma_kernel(const __grid_constant__ TileArgs tile) {
  using T = Tile<kRows>;
  extern __shared__ __align__(128) uint8_t shared[];
  const W4Args& args = tile.args;
  const W4Shape& shape = args.shape;
  const int block = static_cast<int>(blockIdx.y), first_row = block * kRows;
  if (first_row >= *args.padded_rows) return;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int expert = args.expert_ids[block], units = units_of(shape), panels = panels_of(shape);
  const int first_panel = static_cast<int>(blockIdx.x) * kTilePanels;
  // A warp beyond the last panel multiplies the last ones once more, for nobody.
  const int panel = min(first_panel + warp % 4 * kWarpPanels, panels - kWarpPanels);
  const uint8_t* const of_warp =
      tile.weights.units + (int64_t{expert} * panels + panel) * units * W::kUnitBytes;
  const int32_t* ids = args.sorted_token_ids + first_row;
  const int rows =
      __syncthreads_count(threadIdx.x < kRows && ids[threadIdx.x % kRows] < shape.rows());
  const RowCopies<kRows> copies(shape, ids, rows);
  const uint32_t stages = shared_address(shared);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < units) copies.start(args, s, stages + s * T::kStageBytes);
    commit_copies();
  }
  float sums[kWarpPanels][T::kWarpTiles][4] = {};
  if (is_wide<W>(tile.weights)) {
    multiply_tile<kRows, W::kMayBeWide, W>(args, copies, of_warp, stages, sums);
  } else {
    multiply_tile<kRows, false, W>(args, copies, of_warp, stages, sums);
  }
  write_tile<kRows, W>(args, ids, rows, expert, first_panel, shared, sums);
}

void launch(const W4Args& args, const PackedWeights& weights, const Launch& where) {
  const TileArgs tile{args, weights};
  const W4Shape& shape = tile.args.shape;
  with_format(shape, [&]<class W>() {
    with_rows<32, 64, 128>(shape.block, [&]<int kRows>() {
      const auto kernel = tile_mma_kernel<kRows, W>;
      allow_shared(kernel, Tile<kRows>::kSharedBytes);
      const dim3 grid(static_cast<unsigned>((panels_of(shape) + kTilePanels - 1) / kTilePanels),
                      static_cast<unsigned>((shape.capacity() + kRows - 1) / kRows));
      kernel<<<grid, kThreads, Tile<kRows>::kSharedBytes, stream_of(where)>>>(tile);
    });
  });
  check_launch("tile_mma_kernel");
}

std::string unsupported(const W4Shape& shape, const DeviceFacts&) {
  for (const int rows : {32, 64, 128}) {
    if (shape.block == rows) return too_many_blocks(shape);
  }
  return fmt::format("takes blocks of 32, 64 and 128 rows, not of {}", shape.block);
}

}  // namespace

const PackedKernel kTileMma = {
    .name = "tile_mma",
    .help = "tiles of 128 rows of weights, decoded in registers, mma.sync (Marlin's form)",
    .scaling = W4Scaling::in_bf16,
    .group = 1,
    .launch = launch,
    .unsupported = unsupported};

namespace {
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, kTileMma>());
const Kernel<W4Down> down(packed_spec<W4Down, kTileMma>());
}  // namespace
}  // namespace moegate::w4_moe
