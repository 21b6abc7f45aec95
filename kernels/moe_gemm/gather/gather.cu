// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs as the public Triton fused-MoE kernel runs them (vLLM, SGLang,
// aphrodite-engine): the "before" of both pull requests. A block per tile of BM rows and 128
// columns over all of K, tiles in grouped order, rows gathered by sorted id and results scattered
// back to them (tile.cuh).
//
// - gather: for each group of K, scale factors of weights are looked up by column and multiplied
//   with each sum
//   (scaling = channel or tensor: once, with the sum, as vLLM's kernel has it without block_shape);
//   a bias is then added, by a kernel of its own; int8, whose sums stay in int32 until then
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

template <int Rows, class Args>
void start(void (*kernel)(Args, TileOrder), const Args& args, const Launch& where) {
  const TileOrder order = tile_order(args.shape);
  allow_shared(kernel, Tile<Rows>::kSharedBytes);
  kernel<<<order.tiles(), Tile<Rows>::kThreads, Tile<Rows>::kSharedBytes, stream_of(where)>>>(
      args, order);
  check_launch("gather_kernel");
}

void launch_int8(const MoeGemmArgs& args, const Launch& where) {
  constexpr WeightScale kOnce = WeightScale::once;
  with_rows<16, 32, 64, 128>(args.shape.block, [&]<int Rows>() {
    if (args.shape.biased) {
      start<Rows>(gather_bias_kernel<Rows, DType::i8, kOnce>, with_bias(args), where);
    } else {
      start<Rows>(gather_kernel<Rows, DType::i8, kOnce>, args, where);
    }
  });
}

template <WeightScale kWeightScale>
void launch_gather(const MoeGemmArgs& args, void*, const Launch& where) {
  if constexpr (kWeightScale == WeightScale::per_column) {
    if (args.shape.dtype == DType::i8) return launch_int8(args, where);
  }
  with_tile(args.shape, [&]<int Rows, DType kDtype>() {
    // Without scale factors there is one kernel.
    constexpr WeightScale kScale = kDtype == DType::bf16 ? WeightScale::per_column : kWeightScale;
    if constexpr (kScale == WeightScale::per_column) {
      constexpr WeightScale kOnce = kDtype == DType::bf16 ? kScale : WeightScale::once;
      if (args.shape.biased) {
        return start<Rows>(gather_bias_kernel<Rows, kDtype, kOnce>, with_bias(args), where);
      }
      if (args.shape.scaled_once()) {
        return start<Rows>(gather_kernel<Rows, kDtype, kOnce>, args, where);
      }
    }
    start<Rows>(gather_kernel<Rows, kDtype, kScale>, args, where);
  });
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
