// SPDX-License-Identifier: Apache-2.0
// The w4 products at decode: weights go from memory straight into the registers that multiply them
// (packed.cuh), while the rows of x wait in shared memory, all of K. Weights are operand a, up to
// 32 routed rows operand b: a byte of weights is read and decoded once for a block.
//
// A block of warps takes a run of panels of one expert, and each warp some of them, all of K: its
// weights are one stream, of which it asks for kRing units before it needs them, also across
// panels. Nothing is added between warps, so that a row's bits do not depend on the batch.
//
// Floor: the weights of the experts that have rows, 8.8 MB each in gpt-oss's gate-up. On an H200 it
// reads them at 75 % of the memory's rate from 8 tokens on, and is then bound by instructions: 90
// for a unit, half of them logic, which has half of the rate. The rest is the ring: the loads of a
// turn share a scoreboard, so that the oldest waits for the newest (22 % of samples). A ring in
// shared memory waits for none, but takes 20 instructions more. It was slower, and so was an equal
// share of all panels for each block (single runs of 128 tokens during development: 459 and 498 us,
// this 331). stream_rows takes its place up to 8 rows of an expert, on Hopper.
//
// Few warps on an SM, as one token has, ask for twelve units ahead, in blocks of four: on an H100
// 9 % less for one token in gate-up, 16 in down, the same bits (A/B of 1f88ab7 beside 49be5cf). A
// warp of gate-up then waits a third of its time for memory, and instructions have 42 % of their
// rate. Single runs during development, for one token in gate-up: to ask L2 for a warp's whole
// panel in advance took 11 to 15 % more time; blocks of two warps or 23 units ahead took 40 % more
// than this, because not all blocks fit on the SMs at once.
#include <algorithm>

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/streaming.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/w4_moe/stream.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

/// Warps of a block, and units that a warp asks for ahead.
template <int kWarpsOf, int kRingOf>
struct Form {
  static constexpr int kWarps = kWarpsOf, kRing = kRingOf;
};
using Many = Form<8, 4>;  // many warps on an SM
using Few = Form<4, 12>;  // at most kFewWarps on an SM: each has to ask for more
constexpr int kFewWarps = 12;

struct StreamArgs {
  W4Args args;
  PackedWeights weights;
  int panels_per_warp, unused;
};

int shared_bytes(const W4Shape& shape) {
  return shape.block * pitch(shape);
}

/// The unit that begins `at` bytes behind all weights' first.
template <class W>
__device__ Unit<W> load_unit(const uint8_t* weights, uint32_t at) {
  const uint32_t lane = threadIdx.x % 32;
  Unit<W> u;
  u.codes = load_streaming(weights + (at + lane * 16));
  constexpr uint32_t kBytes = sizeof u.scales;
  u.scales = __ldg(reinterpret_cast<const typename W::Scales*>(
      weights + (at + (kUnitCodes + lane / 4 * kBytes))));
  return u;
}

/// Rows of the block to shared memory, zeros behind K. Rows of padding are left as they are: their
/// products go nowhere.
__device__ void load_rows(const W4Args& args, const int32_t* ids, int rows, uint8_t* to) {
  const W4Shape& shape = args.shape;
  const int pieces = units_of(shape) * kUnitK / 8, there = shape.k / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / pieces, piece = i % pieces;
    const uint16_t* from = args.x + int64_t{shape.source(ids[row])} * shape.k + piece * 8;
    uint8_t* piece_to = to + row * pitch(shape) + piece * 16;
    copy_async<16>(shared_address(piece_to), piece < there ? from : args.x, piece < there);
  }
}

/// The panels [panel, end) of a warp, of whose first one `ring` has the first units. `at`: where
/// that panel begins; `x`: where this lane's rows of matrices do.
template <int kTiles, bool kWide, class W, int kRing>
__device__ void multiply_panels(const W4Args& args, const uint8_t* weights, const Work& work,
                                int panel, int end, uint32_t at, Unit<W> (&ring)[kRing],
                                uint32_t x) {
  const int tiles = (work.rows + 7) / 8, row_bytes = pitch(args.shape);
  const int units = units_of(args.shape);
  for (; panel < end; ++panel) {
    const uint32_t next = panel + 1 < end ? at + static_cast<uint32_t>(units) * W::kUnitBytes : at;
    const Biases biases = load_biases<W>(args, work.expert, panel);
    float sums[kTiles][4] = {};
    for (int unit = 0; unit < units; unit += kRing) {
#pragma unroll
      for (int i = 0; i < kRing; ++i) {
        if (unit + i >= units) break;
        const uint32_t x_of_unit = x + (unit + i) * kUnitK * 2;
        if constexpr (W::kScalesSums) {
          multiply_groups<kTiles>(ring[i], x_of_unit, row_bytes, tiles, sums);
        } else {
          multiply_unit<kTiles, kWide>(ring[i], x_of_unit, row_bytes, tiles, sums);
        }
        // Into the registers that are free now: from others it would have to be moved, and so
        // waited for. Behind the last panel it is what was read before, for nobody.
        const bool is_in_panel = unit + i + kRing < units;
        const uint32_t from = is_in_panel ? at + (unit + kRing) * W::kUnitBytes : next;
        ring[i] = load_unit<W>(weights, from + i * W::kUnitBytes);
      }
    }
    at = next;
    write_panel<kTiles>(args, work, biases, panel, sums);
  }
}

template <int kTiles, class F, class W>
__global__ void __launch_bounds__(F::kWarps * 32, kTiles > 1      ? 1
                                                  : F::kRing == 4 ? 4
                                                                  : 3)
    stream_mma_kernel(const __grid_constant__ StreamArgs stream) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ int32_t ids[kTiles * 8];
  __shared__ float routing[kTiles * 8];
  const W4Args& args = stream.args;
  const W4Shape& shape = args.shape;
  const int block = static_cast<int>(blockIdx.y), first_row = block * kTiles * 8;
  if (first_row >= *args.padded_rows) return;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int units = units_of(shape), panels = panels_of(shape);
  const int panel = (static_cast<int>(blockIdx.x) * F::kWarps + warp) * stream.panels_per_warp;
  const int end = min(panels, panel + stream.panels_per_warp);
  Work work{ids, routing, 0, args.expert_ids[block]};
  const auto at = static_cast<uint32_t>((work.expert * panels + min(panel, panels - 1)) * units) *
                  W::kUnitBytes;
  Unit<W> ring[F::kRing];
#pragma unroll
  for (int i = 0; i < F::kRing; ++i) {
    ring[i] = load_unit<W>(stream.weights.units, at + min(i, units - 1) * W::kUnitBytes);
  }
  bool there = false;
  if (thread < kTiles * 8) {
    const int32_t r = args.sorted_token_ids[first_row + thread];
    there = r < shape.rows();
    ids[thread] = r;
    if (shape.down && there) routing[thread] = args.routing_weights[r];
  }
  work.rows = __syncthreads_count(there);
  load_rows(args, ids, work.rows, shared);
  const bool wide = is_wide<W>(stream.weights);
  wait_all_copies();
  __syncthreads();
  const uint32_t x = shared_address(shared) + lane % 8 * pitch(shape) + lane / 8 * 16;
  if (wide) {
    multiply_panels<kTiles, W::kMayBeWide>(args, stream.weights.units, work, panel, end, at, ring,
                                           x);
  } else {
    multiply_panels<kTiles, false>(args, stream.weights.units, work, panel, end, at, ring, x);
  }
}

template <int kTiles, class F, class W>
void launch_form(const StreamArgs& stream, int blocks, const Launch& where) {
  const W4Shape& shape = stream.args.shape;
  const auto kernel = stream_mma_kernel<kTiles, F, W>;
  const auto shared = static_cast<size_t>(shared_bytes(shape));
  allow_shared(kernel, shared);
  const int per_block = F::kWarps * stream.panels_per_warp;
  const dim3 grid(static_cast<unsigned>((panels_of(shape) + per_block - 1) / per_block),
                  static_cast<unsigned>(blocks));
  kernel<<<grid, F::kWarps * 32, shared, stream_of(where)>>>(stream);
}

void launch(const W4Args& args, const PackedWeights& weights, const Launch& where) {
  constexpr int kBlocksPerProcessor = 8, kMostPanels = 8;
  const W4Shape& shape = args.shape;
  const auto blocks = static_cast<int>((shape.capacity() + shape.block - 1) / shape.block);
  // Many blocks, so that the last ones to end are few, if all experts that may have rows do.
  const int likely = std::min(blocks, std::min(shape.rows(), shape.experts));
  const int panels = likely * panels_of(shape);
  const int wanted = kBlocksPerProcessor * where.device.processors * Many::kWarps;  // warps
  const StreamArgs stream{args, weights, std::clamp(panels / wanted, 1, kMostPanels), 0};
  with_format(shape, [&]<class W>() {
    with_rows<8, 16, 32>(shape.block, [&]<int kRows>() {
      if constexpr (kRows == 8) {
        if (panels <= kFewWarps * where.device.processors) {
          return launch_form<1, Few, W>(stream, blocks, where);
        }
      }
      launch_form<kRows / 8, Many, W>(stream, blocks, where);
    });
  });
  check_launch("stream_mma_kernel");
}

std::string unsupported(const W4Shape& shape, const DeviceFacts& device) {
  if (shape.block != 8 && shape.block != 16 && shape.block != 32) {
    return fmt::format("takes blocks of 8, 16 and 32 rows, not of {}", shape.block);
  }
  if (units_bytes(shape) >= int64_t{1} << 32) return "takes weights of less than 4 GiB";
  if (shared_bytes(shape) + 1024 <= device.shared_per_block) return too_many_blocks(shape);
  return fmt::format("{} rows of K = {} do not fit in shared memory", shape.block, shape.k);
}

}  // namespace

const PackedKernel kStreamMma = {
    .name = "stream_mma",
    .help = "weights from memory into registers, rows in shared memory, mma.sync",
    .scaling = W4Scaling::exact,
    .group = 1,
    .launch = launch,
    .unsupported = unsupported};

namespace {
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, kStreamMma>());
const Kernel<W4Down> down(packed_spec<W4Down, kStreamMma>());
}  // namespace
}  // namespace moegate::w4_moe
