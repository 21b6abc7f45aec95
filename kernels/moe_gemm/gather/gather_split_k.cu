// SPDX-License-Identifier: Apache-2.0
// moe_gate_up with K split over blocks as aphrodite-engine PR 1603 has it: the tiles of gather, S
// blocks each, the split fastest in the grid; split s takes the slices s, s + S, ... of K, rounds
// its sums to bf16 and adds them to the output by atomics of bf16 pairs, which an extra launch has
// zeroed.
//
// - gather_split_k1: what the PR ran, as its grid never had more than one split: no zeroing, plain
//   stores, so that 1.00 x gather is expected
// - split_k2, split_k4, split_k8: what it meant
//
// The idea: S times as many blocks, each with an S-th of the chain of slices, where the tiles leave
// SMs idle (few tokens, long K). The price: the output written once more and then S times read,
// added and written at L2, a launch, and rounding: S bf16 partials and S - 1 further roundings of
// their sum give about sqrt(2S - 1) times the error of one, which is the tolerance's factor. From
// three splits on the result depends on the order in which they arrive.
//
// On an H100 (reports/gallery/pr-aphrodite-1603.md): gather_split_k1 1.00x of gather everywhere;
// split_k8 1.9x at one token of K = 7168 and 1.1x of K = 2048; from four tokens on at most 1.07x,
// and below 1 where the tiles alone fill the SMs.
//
// Down projections have too few slices for it; the PR splits only gate and up.
#include <cmath>

#include "kernels/moe_gemm/gather/tile.cuh"
#include "kernels/moe_gemm/gather/zero_output.h"

namespace moegate::moe_gemm::gather {
namespace {

constexpr int kMostTiles = 65535;  // the grid's second dimension

template <int Rows, DType kDtype, Result kResult>
__global__ void __launch_bounds__(Tile<Rows>::kThreads)
    split_kernel(const __grid_constant__ MoeGemmArgs args, const TileOrder order) {
  Place place = order.place(blockIdx.y);
  if (place.block * Rows >= *args.padded_rows) return;
  if constexpr (kResult == Result::added) {  // else one split, known when compiling as in the PR
    place.first_slice = blockIdx.x;
    place.slice_step = gridDim.x;
    if (place.first_slice >= slices_of<kDtype>(args.shape)) return;  // would only add zeros
  }
  compute_tile<Rows, kDtype, WeightScale::per_column, kResult>(args, place);
}

template <int kSplits>
void launch(MoeGateUp& problem, const Launch& where) {
  constexpr Result kResult = kSplits == 1 ? Result::stored : Result::added;
  const MoeGemmArgs args = problem.args();
  const auto stream = stream_of(where);
  const TileOrder order = tile_order(args.shape);
  if constexpr (kResult == Result::added)
    zero_output(args.out, int64_t{args.shape.rows()} * args.shape.n, stream);
  with_tile(args.shape, [&]<int Rows, DType kDtype>() {
    const auto kernel = split_kernel<Rows, kDtype, kResult>;
    allow_shared(kernel, Tile<Rows>::kSharedBytes);
    const dim3 grid(kSplits, order.tiles());
    kernel<<<grid, Tile<Rows>::kThreads, Tile<Rows>::kSharedBytes, stream>>>(args, order);
  });
  check_launch("split_kernel");
}

std::string unsupported(const Case& c, const DeviceFacts&) {
  const MoeGemmShape shape = MoeGateUp::shape_of(c);
  const std::string why = gather_unsupported(shape);
  if (!why.empty()) return why;
  const int tiles = tile_order(shape).tiles();
  return tiles <= kMostTiles ? "" : fmt::format("{} tiles exceed {}", tiles, kMostTiles);
}

template <int kSplits>
KernelSpec<MoeGateUp> spec() {
  return {.name = kSplits == 1 ? "gather_split_k1" : fmt::format("split_k{}", kSplits),
          .backend = Backend::cuda,
          .help = kSplits == 1 ? std::string("the split-K kernel with one split, as the PR ran it")
                               : fmt::format("gather, K split over {} blocks, parts added by bf16 "
                                             "atomics (aphrodite-engine PR 1603)",
                                             kSplits),
          .launch = launch<kSplits>,
          .unsupported = unsupported,
          .tolerance = std::sqrt(2.0 * kSplits - 1),
          .between = rounded_between(kSplits)};
}

const Kernel<MoeGateUp> one(spec<1>());
const Kernel<MoeGateUp> two(spec<2>());
const Kernel<MoeGateUp> four(spec<4>());
const Kernel<MoeGateUp> eight(spec<8>());

}  // namespace
}  // namespace moegate::moe_gemm::gather
