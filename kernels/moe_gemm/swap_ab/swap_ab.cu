// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA, clusters)
// The grouped GEMMs with the operands swapped: 128 or 64 rows of an expert's weights are the M of
// wgmma, the BM routed rows of a block its N, so that few tokens waste no tensor-core rows and
// every weight is streamed once. Weights come by TMA, routed rows are gathered by asynchronous
// copies into the same swizzle; warps copy, warpgroups multiply, a ring of stages is between them.
// Blocks are persistent: copies for the next tile go on while the sums of this one are written.
// After each group of 128 along K of fp8 the sums go from the tensor cores' accumulators to fp32
// registers, times both scale factors: fp8 accumulation on Hopper keeps too few bits for more.
// With one factor per channel or tensor they go there unscaled, and are scaled once, when they
// leave. Those of bf16 and int8 stay in the accumulators.
//
// swap_ab_split_k cuts K over the blocks of a cluster, or the columns in tiles of 64, where whole
// tiles would leave SMs idle or unevenly loaded (choice.cc). Blocks send the parts of their
// sums through distributed shared memory to the one that adds them up in the order of K: one
// launch, no atomics, no workspace, no cluster-wide barrier, the same result every time. That one
// adds the bias, too: in bf16 0 to 0.25 % of gpt-oss-120b's products and up to 0.7 % of Qwen3-30B's
// gate-up, 3 % (TP1) and 6 % (TP2) of its down at 512 tokens, where K is short and N long. Sums of
// int8 are exact: parts travel in int32, and every cut has the same bits. Int8 takes as long as
// fp8 scaled once (0.99 to 1.04 of it in eight rows of Mixtral and Qwen3-30B at 1 and 32 tokens).
//
// On an H200, cold (reports/gallery/nvidia-h200-fp8-moe.md), us for T = 1, 8, 32, 128, and below it
// the public Triton kernel, tuned:
//   R1 TP8 gate-up      11.0 54.0 139 216
//     Triton            31.4 53.7 152 226
//   R1 TP8 down         7.1 29.7 76
//     Triton            8.5 38.1 121
//   Qwen3-30B gate-up   9.3 41.6 83.6 99.2
//     Triton            13.6 42.3 92.0 102
//   Qwen3-30B down      6.6 22.9 44.2 53.5
//     Triton            8.7 26.1 51.5 58.1
// gpt-oss-120b in bf16 (E 128, top-4, 2880 x 2880), one process, on two H200s, 2026-11-23, T = 1,
// 8, 32, 128, 512, and below it a Triton kernel of the public one's structure, the best of one or
// two tiles, and the weights at 4.2 TB/s:
//   gate-up      34.5 208 587 964 995
//     Triton     34.0 214 609 1000 1017
//     weights    31.6 213 608 1003 1011
//   down         18.7 108 300 494 511
//     Triton     19.6 110 313 509 523
//     weights    15.8 107 304 502 506
// From T = 8 on nothing but the memory is left; at T = 1 the first tiles' way from it, and its end.
// Looking the first rows up before barriers are prepared gained nothing (26 rows of up to 32
// tokens). Without cuts R1 gate-up takes 19 us at T = 1. At T = 8 no cut is faster than whole
// tiles, though they load SMs unevenly. Many rows per expert are for wide_tiles, a K of 256
// for resident_rows.
#include <algorithm>
#include <bit>

#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/swap_ab/kernel.cuh"
#include "kernels/moe_gemm/swap_ab/swap_ab.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::swap_ab {
namespace {

using namespace cuda;

/// Calls f with a configuration, one of ConfigFor<Tokens, Columns, Split>.
template <template <int, int, bool> class ConfigFor, class F>
auto with_config(int block, const SwapAbTile& tile, F f) {
  return with_rows<16, 32, 64, 128>(block, [&]<int Tokens>() {
    if constexpr (Tokens > 32) {
      return f(ConfigFor<Tokens, 128, false>());
    } else {
      return with_rows<128, 64>(tile.columns, [&]<int Columns>() {
        return tile.splits > 1 ? f(ConfigFor<Tokens, Columns, true>())
                               : f(ConfigFor<Tokens, Columns, false>());
      });
    }
  });
}

template <int Tokens, int Columns, bool Split>
using Fp8Config = Config<DType::e4m3, Tokens, Columns, Split>;
template <int Tokens, int Columns, bool Split>
using Bf16Config = Config<DType::bf16, Tokens, Columns, Split>;
template <int Tokens, int Columns, bool Split>
using BiasedFp8Config = ConfigBiased<DType::e4m3, Tokens, Columns, Split>;
template <int Tokens, int Columns, bool Split>
using BiasedBf16Config = ConfigBiased<DType::bf16, Tokens, Columns, Split>;

template <int Tokens, int Columns, bool Split>
using PlainInt8Config = ConfigInt8<Tokens, Columns, Split, false>;
template <int Tokens, int Columns, bool Split>
using BiasedInt8Config = ConfigInt8<Tokens, Columns, Split, true>;

/// Calls f with the configuration of a tile of swap_ab_tiles().
template <class F>
auto with_config(const MoeGemmShape& s, const SwapAbTile& tile, F f) {
  if (s.dtype == DType::i8) {
    return s.biased ? with_config<BiasedInt8Config>(s.block, tile, f)
                    : with_config<PlainInt8Config>(s.block, tile, f);
  }
  if (s.biased) {
    return s.scaled() ? with_config<BiasedFp8Config>(s.block, tile, f)
                      : with_config<BiasedBf16Config>(s.block, tile, f);
  }
  if (s.scaled_once()) return with_config<ConfigOnce>(s.block, tile, f);
  return s.scaled() ? with_config<Fp8Config>(s.block, tile, f)
                    : with_config<Bf16Config>(s.block, tile, f);
}

template <class C>
constexpr auto kernel_of() {
  if constexpr (C::kBiased) {
    return swap_ab_bias_kernel<C>;
  } else {
    return swap_ab_kernel<C>;
  }
}

/// Clusters that an idle GPU holds at once.
int resident(const MoeGemmShape& s, const SwapAbTile& tile, const DeviceFacts& device) {
  const int blocks =
      device.processors * blocks_per_sm(s.dtype, s.block, tile.columns, tile.splits > 1);
  if (tile.splits == 1 || device.backend != Backend::cuda) return blocks / tile.splits;
  return with_config(s, tile, [&]<class C>(C) {
    return resident_clusters(kernel_of<C>(), tile.splits, C::kThreads, C::kSharedBytes, device);
  });
}

SwapAbTile tile_for(const MoeGemmShape& s, bool split, const DeviceFacts& device) {
  std::vector<SwapAbTile> tiles = swap_ab_tiles(s);
  if (!split) std::erase_if(tiles, [](auto& t) { return t.splits > 1 || t.columns < 128; });
  return choose_swap_ab_tile(s, tiles, device.processors,
                             [&](const SwapAbTile& tile) { return resident(s, tile, device); });
}

template <class P, bool Split>
void launch(P& problem, const Launch& where) {
  const BiasedArgs args = problem.args();
  launch_swap_ab(args, tile_for(args.shape, Split, where.device), where);
}

std::string unsupported(const MoeGemmShape& s, bool split) {
  constexpr int kFewestSlices = 4;
  // Of 16 bytes, for the copy engine.
  const int multiple = s.scaled_once() ? 16 : s.scaled() ? kMoeGroup : 8;
  if (s.k % multiple != 0) return fmt::format("K = {} is not a multiple of {}", s.k, multiple);
  if (split && s.k_slices() < kFewestSlices) {
    return fmt::format("K = {} is too short to be cut: below {}", s.k,
                       kFewestSlices * kSliceBytes / static_cast<int>(size_of(s.dtype)));
  }
  return tiles::tile_unsupported(s, true, true, true);
}

Knobs knobs_of(const SwapAbTile& tile) {
  return {{"columns", tile.columns}, {"splits", tile.splits}};
}

SwapAbTile tile_of(const Knobs& knobs) {
  return {knobs.at("columns"), knobs.at("splits")};
}

/// All that are compiled: those for few rows per block and a long K, which include the others'.
std::vector<Knobs> all_knobs() {
  std::vector<Knobs> all;
  for (const SwapAbTile& tile : swap_ab_tiles({.k = 1 << 20, .block = 16})) {
    all.push_back(knobs_of(tile));
  }
  return all;
}

std::string knobs_unsupported(const MoeGemmShape& s, const Knobs& knobs) {
  const std::string why = unsupported(s, false);
  if (!why.empty()) return why;
  const auto tiles = swap_ab_tiles(s);
  if (std::find(tiles.begin(), tiles.end(), tile_of(knobs)) != tiles.end()) return {};
  return fmt::format("{} does not fit block = {} and K = {}", text(tile_of(knobs)), s.block, s.k);
}

const tiles::TileRegistration tiles(
    {.name = "swap_ab",
     .backend = Backend::cuda,
     .compiled = all_knobs(),
     .launch = [](const MoeGemmArgs& args, const Knobs& knobs, void*,
                  const Launch& where) { launch_swap_ab(args, tile_of(knobs), where); },
     .unsupported = knobs_unsupported,
     .usual = [](const MoeGemmShape& s,
                 const DeviceFacts& device) { return knobs_of(tile_for(s, true, device)); }});

template <class P, bool Split>
KernelSpec<P> spec() {
  return {.name = Split ? "swap_ab_split_k" : "swap_ab",
          .backend = Backend::cuda,
          .help = Split ? "wgmma with weights as M, K split over a cluster where SMs would idle"
                        : "wgmma with weights as M and routed rows as N, TMA and gathered rows",
          .launch = launch<P, Split>,
          .unsupported = [](const Case& c,
                            const DeviceFacts&) { return unsupported(P::shape_of(c), Split); },
          .path =
              [](const Case& c, const DeviceFacts& device) {
                return text(tile_for(P::shape_of(c), Split, device));
              }};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp, false>());
const Kernel<MoeGateUp> gate_up_split(spec<MoeGateUp, true>());
const Kernel<MoeDown> down(spec<MoeDown, false>());
const Kernel<MoeDown> down_split(spec<MoeDown, true>());

}  // namespace

void launch_swap_ab(const MoeGemmArgs& args, const SwapAbTile& tile, const Launch& where) {
  const MoeGemmShape& s = args.shape;
  const auto row_blocks = static_cast<int>(s.capacity() / s.block);
  const int64_t tiles = int64_t{row_blocks} * ((s.n + tile.columns - 1) / tile.columns);
  const int64_t clusters = std::clamp<int64_t>(resident(s, tile, where.device), 1, tiles);
  with_config(s, tile, [&]<class C>(C) {
    const auto& operands = static_cast<const typename C::Args&>(args);
    ClusterLaunch launch(kernel_of<C>(), static_cast<int>(clusters), tile.splits, C::kThreads,
                         C::kSharedBytes, where.stream);
    // Clusters of one, too: R1 TP8 down at one token took 7.15 us so (commit 2472995), 7.5 as a
    // plain launch (0bfbd21), on other H200s.
    launch.config.numAttrs = 1;
    if (s.early) launch.start_early();
    check_cuda(cudaLaunchKernelEx(
                   &launch.config, kernel_of<C>(), fp8::weights_map(args, C::kColumns), operands,
                   Cut{std::countr_zero(static_cast<unsigned>(tile.splits)), row_blocks}),
               "swap_ab_kernel");
  });
}

}  // namespace moegate::moe_gemm::swap_ab
