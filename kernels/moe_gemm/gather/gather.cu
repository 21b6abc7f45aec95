// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs as the public Triton fused-MoE kernel runs them (vLLM, SGLang,
// aphrodite-engine): the "before" of both pull requests. A block per tile of BM rows and 128
// columns over all of K, tiles in grouped order, rows gathered by sorted id and results scattered
// back to them (tile.cuh).
//
// - gather: for each group of K, scale factors of weights are looked up by column and multiplied
//   with each sum
//   (scaling = channel or tensor: once, with the sum, as vLLM's kernel has it without block_shape);
//   a bias is then added, by a kernel of its own
// - scalar_b_scale (SGLang PR 10567, first step): one factor per tile and group, multiplied with
//   the rows' factors first, which leaves one multiply-add per sum
//
// Floor: the weights of the experts that have rows, once, at the speed of memory; with few tokens
// the chain of K/128 slices that a block goes through, as only so many tiles are there.
//
// On an H200 beside SGLang's Triton kernel in its default configuration, in one run
// (reports/gallery/pr-sglang-10567.md): down 1189 us of its 1185 at 8192 tokens, 388 of
// 389 at 2048, gate-up 367 of 365 at 2048; at 8192, at the power limit, 1040 of 985. Where Triton
// has a tuned configuration, BN, stages and group depend on the number of tokens: these do not.
#include "kernels/moe_gemm/gather/tile.cuh"

namespace moegate::moe_gemm::gather {
namespace {

template <int Rows, DType kDtype, WeightScale kWeightScale>
__global__ void __launch_bounds__(Tile<Rows>::kThreads)
    gather_kernel(const __grid_constant__ MoeGemmArgs args, const TileOrder order) {
  const Place place = order.place(blockIdx.x);
  if (place.block * Rows >= *args.padded_rows) return;
  compute_tile<Rows, kDtype, kWeightScale, Result::stored>(args, place);
}

template <int Rows, DType kDtype, WeightScale kWeightScale>
__global__ void __launch_bounds__(Tile<Rows>::kThreads)
    gather_bias_kernel(const __grid_constant__ BiasedArgs args, const TileOrder order) {
  const Place place = order.place(blockIdx.x);
  if (place.block * Rows >= *args.padded_rows) return;
  compute_tile<Rows, kDtype, kWeightScale, Result::stored>(args, place);
}

template <WeightScale kWeightScale>
void launch_gather(const MoeGemmArgs& args, void*, const Launch& where) {
  const TileOrder order = tile_order(args.shape);
  with_tile(args.shape, [&]<int Rows, DType kDtype>() {
    // Without scale factors there is one kernel.
    constexpr WeightScale kScale = kDtype == DType::bf16 ? WeightScale::per_column : kWeightScale;
    const auto start = [&](auto kernel, const auto& operands) {
      allow_shared(kernel, Tile<Rows>::kSharedBytes);
      kernel<<<order.tiles(), Tile<Rows>::kThreads, Tile<Rows>::kSharedBytes, stream_of(where)>>>(
          operands, order);
    };
    if constexpr (kScale == WeightScale::per_column) {
      constexpr WeightScale kOnce = kDtype == DType::bf16 ? kScale : WeightScale::once;
      if (args.shape.biased) {
        return start(gather_bias_kernel<Rows, kDtype, kOnce>, with_bias(args));
      }
      if (args.shape.scaled_once()) return start(gather_kernel<Rows, kDtype, kOnce>, args);
    }
    start(gather_kernel<Rows, kDtype, kScale>, args);
  });
  check_launch("gather_kernel");
}

std::string any_epilogue_unsupported(const MoeGemmShape& shape) {
  return gather_unsupported(shape, true);
}
std::string scalar_unsupported(const MoeGemmShape& shape) {
  return shape.scaled() ? gather_unsupported(shape) : "bf16 has no scale factors";
}

const tiles::PlainKernel<Backend::cuda, launch_gather<WeightScale::per_column>,
                         any_epilogue_unsupported>
    per_column("gather",
               "a block per BM rows and 128 columns, gathered rows, a scale factor per column");
const tiles::PlainKernel<Backend::cuda, launch_gather<WeightScale::per_tile>, scalar_unsupported>
    per_tile("scalar_b_scale",
             "gather with one scale factor of weights per tile (SGLang PR 10567, first step)");

}  // namespace
}  // namespace moegate::moe_gemm::gather
