// SPDX-License-Identifier: Apache-2.0
// The router's logits as a plain tiled product: 128 experts by 64 tokens whatever their number, by
// a block of eight warps, all of K in one chain of mma.sync. Packed weights and rows of x go
// through a ring in shared memory. What other variants replace.
//
// Floor: that of tiles. For few tokens one or two SMs do all the work.
//
// Its factor: tensor cores cut what does not fit a sum instead of rounding it, one step in 16 of K,
// always towards zero: some 1e-5 of a logit at H = 7168, by which fp32 logits are too small.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/router_gemm/parts.cuh"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr int kThreads = 256, kStages = 4;
constexpr int kExperts = 128;  // of a tile
constexpr int kStageK = 64, kStageGroups = kStageK / kGroup;
constexpr int kLineBytes = kStageK * 2;    // of a row in a stage
constexpr int kPieces = kStageK / kPiece;  // of a line

// Warps of a block are columns of tokens; the others lie along experts.
constexpr int kTokens = 64;  // of a tile
constexpr int kTokenWarps = 2, kExpertWarps = 8 / kTokenWarps;
constexpr int kExpertTiles = kExperts / kExpertWarps / kTileExperts;  // of a warp
constexpr int kTokenTiles = kTokens / kTokenWarps / kTileTokens;
constexpr int kStageBytes = (kExperts + kTokens) * kLineBytes;
constexpr size_t kSharedBytes = size_t{kStages} * kStageBytes;
constexpr int kBlocksPerSm = 2;

/// Where a piece of a row of x lies in a stage: the same group of two rows, which eight lanes read
/// at once, lies in different banks.
__device__ int piece_at(int row, int piece) {
  return row * kLineBytes + (piece ^ (row & 1) * 4) * 16;
}

/// Starts the copies of tokens [first, first + kTokens) to a stage; zeros where there is nothing.
__device__ void copy_tokens(const RouterGemmArgs& args, int first, int stage, uint32_t to) {
  const RouterGemmShape& shape = args.shape;
  const int piece = static_cast<int>(threadIdx.x) % kPieces, k = stage * kStageK + piece * kPiece;
#pragma unroll
  for (int i = 0; i < kTokens; i += kThreads / kPieces) {
    const int row = i + static_cast<int>(threadIdx.x) / kPieces;
    const bool there = first + row < shape.tokens && k < shape.hidden;
    const uint16_t* from = there ? args.x + int64_t{first + row} * shape.hidden + k : args.x;
    copy_async<16>(to + piece_at(row, piece), from, there);
  }
}

/// Those of the tiles of experts from `first` on, each one's groups behind each other.
__device__ void copy_experts(const PackedArgs& packed, int first, int stage, uint32_t to) {
  constexpr int kGroupPieces = kGroupBytes / 16;
  const RouterGemmShape& shape = packed.args.shape;
  const int groups = groups_of(shape);
#pragma unroll
  for (int i = 0; i < kExperts * kPieces; i += kThreads) {
    const int at = i + static_cast<int>(threadIdx.x), of_stage = at / kGroupPieces;
    const int tile = first + of_stage / kStageGroups;
    const int group = stage * kStageGroups + of_stage % kStageGroups;
    const bool there = tile < expert_tiles(shape) && group < groups;
    const int64_t from = there ? (int64_t{tile} * groups + group) * kGroupBytes : 0;
    copy_async<16>(to + at * 16, packed.w + from + at % kGroupPieces * 16, there);
  }
}

/// The sums of a warp: its tiles of experts by its tiles of tokens.
struct WarpSums {
  float of[kExpertTiles][kTokenTiles][4] = {};

  /// `experts`, `tokens`: where this lane's pieces of the group begin in the stage.
  __device__ void add_group(uint32_t experts, uint32_t tokens) {
    GroupOfExperts w[kExpertTiles];
    uint4 x[kTokenTiles];
#pragma unroll
    for (int i = 0; i < kExpertTiles; ++i) {
      w[i].first = load_shared(experts + i * kStageGroups * kGroupBytes);
      w[i].second = load_shared(experts + i * kStageGroups * kGroupBytes + kStepBytes);
    }
#pragma unroll
    for (int j = 0; j < kTokenTiles; ++j) {
      x[j] = load_shared(tokens + j * kTileTokens * kLineBytes);
    }
#pragma unroll
    for (int i = 0; i < kExpertTiles; ++i) {
#pragma unroll
      for (int j = 0; j < kTokenTiles; ++j) multiply_group(of[i][j], w[i], x[j]);
    }
  }
  /// `first_expert`, `first_token`: the warp's.
  __device__ void store(const RouterGemmArgs& args, int first_expert, int first_token) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kExpertTiles; ++i) {
#pragma unroll
      for (int high = 0; high < 2; ++high) {
        const int expert = first_expert + i * kTileExperts + high * 8 + lane / 4;
        if (expert >= args.shape.experts) continue;
        const float bias = args.bias_of(expert);
#pragma unroll
        for (int j = 0; j < kTokenTiles; ++j) {
#pragma unroll
          for (int odd = 0; odd < 2; ++odd) {
            const int token = first_token + j * kTileTokens + lane % 4 * 2 + odd;
            if (token >= args.shape.tokens) continue;
            write_float(args.shape.out, args.logits, int64_t{token} * args.shape.experts + expert,
                        of[i][j][2 * high + odd] + bias);
          }
        }
      }
    }
  }
};

/// Grid: tiles of experts, tiles of tokens.
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    tile_kernel(const __grid_constant__ PackedArgs packed) {
  extern __shared__ __align__(128) uint8_t shared[];
  const RouterGemmArgs& args = packed.args;
  const RouterGemmShape& shape = args.shape;
  const int first_expert = static_cast<int>(blockIdx.x) * kExperts;
  const int first_token = static_cast<int>(blockIdx.y) * kTokens;
  const int groups = groups_of(shape), stages = (groups + kStageGroups - 1) / kStageGroups;
  const uint32_t ring = shared_address(shared);
  const auto start = [&](int stage) {
    if (stage < stages) {
      const uint32_t to = ring + stage % kStages * kStageBytes;
      copy_experts(packed, first_expert / kTileExperts, stage, to);
      copy_tokens(args, first_token, stage, to + kExperts * kLineBytes);
    }
    commit_copies();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) start(stage);

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_expert = warp / kTokenWarps * (kExpertTiles * kTileExperts);
  const int warp_token = warp % kTokenWarps * (kTokenTiles * kTileTokens);
  const int experts = warp_expert * kLineBytes + lane * 16;
  const int tokens = (kExperts + warp_token + lane / 4) * kLineBytes;
  WarpSums sums;
  for (int stage = 0; stage < stages; ++stage) {
    wait_copies<kStages - 2>();
    __syncthreads();
    start(stage + kStages - 1);
    const uint32_t at = ring + stage % kStages * kStageBytes;
#pragma unroll
    for (int i = 0; i < kStageGroups; ++i) {
      const int group = stage * kStageGroups + i;
      if (group >= groups) break;
      // A warp's rows begin with an even one.
      const int piece = ((i * 4 + lane % 4) ^ (lane / 4 & 1) * 4) * 16;
      sums.add_group(at + experts + i * kGroupBytes, at + tokens + piece);
    }
  }
  sums.store(args, first_expert + warp_expert, first_token + warp_token);
}

void launch_tile(const PackedArgs& packed, const Launch& where) {
  const RouterGemmShape& shape = packed.args.shape;
  allow_shared(tile_kernel, kSharedBytes);
  const dim3 grid(static_cast<unsigned>((shape.experts + kExperts - 1) / kExperts),
                  static_cast<unsigned>((shape.tokens + kTokens - 1) / kTokens));
  tile_kernel<<<grid, kThreads, kSharedBytes, stream_of(where)>>>(packed);
  check_launch("tile_kernel");
}

const Kernel<RouterGemm> kernel({
    .name = "tile_mma",
    .backend = Backend::cuda,
    .help = "tiles of 128 experts by 64 tokens, all of K in one chain of mma.sync",
    .launch = [](RouterGemm& problem,
                 const Launch& where) { launch_tile(packed_args(problem), where); },
    .prepare = pack_weights,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
    .tolerance = 4,
});

}  // namespace
}  // namespace moegate::router_gemm
