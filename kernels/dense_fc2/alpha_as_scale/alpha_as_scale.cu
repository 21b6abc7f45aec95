// SPDX-License-Identifier: Apache-2.0
// dense_fc2 as the grouped GEMM of a single expert (moe_gemm's gather): alpha goes into the scale
// factors of a, of which a row then has one for each 128 of K, as gather reads them. For chips that
// have no wgmma and no TMA; on Hopper the other variants are for that.
//
// A first kernel writes [M, K/128] + [H/128, K/128] factors and the one expert's list of rows: at
// most 1/32 of the bytes of a and b. Floor: the operator's. On an H100 (R1 TP8, 2026-11-25) it
// takes 311 us for 128 tokens and 323 for 256, where alpha_per_k_tile takes 201 and 234: there is
// no split of K, so that only H/128 = 56 blocks per 128 tokens are under way on 132 SMs.
#include <algorithm>

#include "kernels/dense_fc2/dense_fc2.h"
#include "kernels/moe_gemm/gather/tile.cuh"

namespace moegate::dense_fc2 {
namespace {

using namespace cuda;
using moe_gemm::MoeGemmArgs;
using moe_gemm::MoeGemmShape;
namespace gather = moe_gemm::gather;

constexpr int kThreads = 256;

/// The product as gather sees it.
MoeGemmShape product_of(const DenseFc2Shape& s) {
  MoeGemmShape product = s.product();
  product.block = s.tokens <= 16 ? 16 : s.tokens <= 32 ? 32 : s.tokens <= 64 ? 64 : 128;
  return product;
}

int blocks_of(const DenseFc2Shape& s) {
  const int block = product_of(s).block;
  return (s.tokens + block - 1) / block;
}

/// Parts of the workspace.
struct Operands {
  float *x_scales, *weight_scales;  // [M, K/128], [ceil(H/128), K/128]
  int32_t *ids, *experts;           // of the blocks' rows; of the blocks: all 0

  static size_t bytes(const DenseFc2Shape& s) {
    const auto [x, weights, places, blocks] = counts(s);
    return 4 * static_cast<size_t>(x + weights + places + blocks);
  }
  static Operands in(float* workspace, const DenseFc2Shape& s) {
    const auto [x, weights, places, blocks] = counts(s);
    auto* lists = reinterpret_cast<int32_t*>(workspace + x + weights);
    return {workspace, workspace + x, lists, lists + places};
  }
  MoeGemmArgs args(const DenseFc2Args& of) const {
    return {.x = of.a,
            .x_scales = x_scales,
            .weights = of.b,
            .weight_scales = weight_scales,
            .routing_weights = nullptr,
            .sorted_token_ids = ids,
            .expert_ids = experts,
            .padded_rows = nullptr,  // every block has rows
            .out = of.out,
            .shape = product_of(of.shape)};
  }

 private:
  struct Counts {
    int64_t x, weights, places, blocks;
  };
  static Counts counts(const DenseFc2Shape& s) {
    const int blocks = blocks_of(s);
    return {int64_t{s.tokens} * s.k_groups(), int64_t{s.n_groups()} * s.k_groups(),
            int64_t{blocks} * product_of(s).block, blocks};
  }
};

__global__ void operands_kernel(DenseFc2Args args, Operands to, int blocks, int block) {
  const DenseFc2Shape& s = args.shape;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t stride = int64_t{gridDim.x} * kThreads, groups = s.k_groups();
  for (int64_t i = first; i < s.tokens * groups; i += stride) {
    const int64_t row = i / groups, expert = i % groups / s.expert_groups();
    to.x_scales[i] = args.a_scales[s.block_scales ? i : 0] * args.alpha[row * s.experts + expert];
  }
  for (int64_t i = first; i < s.n_groups() * groups; i += stride) {
    to.weight_scales[i] = args.b_scales[s.block_scales ? i : 0];
  }
  for (int64_t i = first; i < blocks * block; i += stride) {
    to.ids[i] = static_cast<int32_t>(min(i, int64_t{s.tokens}));
  }
  for (int64_t i = first; i < blocks; i += stride) to.experts[i] = 0;
}

template <int Rows>
__global__ void __launch_bounds__(gather::Tile<Rows>::kThreads)
    one_expert_kernel(const __grid_constant__ MoeGemmArgs args, const gather::TileOrder order) {
  const gather::Place place = order.place(blockIdx.x);
  gather::compute_tile<Rows, DType::e4m3, gather::WeightScale::per_tile, gather::Result::stored>(
      args, place);
}

void launch(DenseFc2& problem, const Launch& where) {
  constexpr int kBlocksPerSm = 4;
  const DenseFc2Args args = problem.args();
  const Operands operands = Operands::in(problem.workspace<float>(), args.shape);
  const MoeGemmArgs product = operands.args(args);
  gather::TileOrder order = gather::tile_order(product.shape);
  order.blocks = blocks_of(args.shape);
  const auto stream = stream_of(where);
  operands_kernel<<<kBlocksPerSm * where.device.processors, kThreads, 0, stream>>>(
      args, operands, order.blocks, product.shape.block);
  check_launch("operands_kernel");
  with_rows<16, 32, 64, 128>(product.shape.block, [&]<int Rows>() {
    using Tile = gather::Tile<Rows>;
    const auto kernel = one_expert_kernel<Rows>;
    allow_shared(kernel, Tile::kSharedBytes);
    kernel<<<order.tiles(), Tile::kThreads, Tile::kSharedBytes, stream>>>(product, order);
  });
  check_launch("one_expert_kernel");
}

std::string unsupported(const Case& c, const DeviceFacts&) {
  const auto s = DenseFc2Shape::of(c);
  if (s.hidden % 8 == 0) return {};
  return fmt::format("H = {} is not a multiple of 8 (16 bytes of a row of out): pad it", s.hidden);
}

const Kernel<DenseFc2> kernel({
    .name = "alpha_as_scale",
    .backend = Backend::cuda,
    .help = "a grouped GEMM of one expert, alpha in the scale factors of a; for every chip",
    .launch = launch,
    .workspace = [](const Case& c,
                    const DeviceFacts&) { return Operands::bytes(DenseFc2Shape::of(c)); },
    .unsupported = unsupported,
});

}  // namespace
}  // namespace moegate::dense_fc2
