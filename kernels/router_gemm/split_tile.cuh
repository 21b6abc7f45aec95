// SPDX-License-Identifier: Apache-2.0
// What a tile of tokens by experts is made of, whose K may be cut over blocks of a cluster: where a
// block is, which parts of K it has, how its rows come and where its logits go (ring_tile.cuh has
// the rest). TMA brings rows of x and of packed w through a ring; tiles of a cluster that have the
// same rows get one copy of them.
//
// A block takes two parts of K (parts.cuh) in each round and sends their sums to the blocks that
// add them up, each its share of the tile. So a round's parts come in order, and need the memory of
// two tiles. One block with all of K keeps the sums in its registers instead.
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma_rs.cuh"
#include "kernels/router_gemm/parts.cuh"

namespace moegate::router_gemm {

using namespace cuda;

constexpr int kRoundParts = 2;   // of a block
constexpr int kStageGroups = 2;  // of K
constexpr int kRowBytes = 128;   // of a stage

/// What a launch of tiles knows besides the operator's arguments. A cluster is `token_tiles` by
/// `expert_tiles` tiles, each of `blocks` blocks.
struct TileWork {
  RouterGemmArgs args;
  int blocks, expert_tiles, token_tiles;
  int expert_clusters;
};
static_assert(std::has_unique_object_representations_v<TileWork>, "a row's identity");

/// Where a block is: its tile, and which of the tile's blocks it is.
struct Place {
  int block, expert, token;  // in the cluster
  int first_expert, first_token;

  template <class T>
  __device__ static Place of(const TileWork& work, const T&) {
    const int rank = cluster_rank();
    const int size = work.blocks * work.expert_tiles * work.token_tiles;
    const int cluster = static_cast<int>(blockIdx.x) / size;
    Place p;
    p.block = rank % work.blocks;
    p.expert = rank / work.blocks % work.expert_tiles;
    p.token = rank / work.blocks / work.expert_tiles;
    p.first_expert = (cluster % work.expert_clusters * work.expert_tiles + p.expert) * T::kExperts;
    p.first_token = (cluster / work.expert_clusters * work.token_tiles + p.token) * T::kTokens;
    return p;
  }
  __device__ int rank_of(const TileWork& work, int other_token, int other_expert) const {
    return (other_token * work.expert_tiles + other_expert) * work.blocks + block;
  }
};

/// The parts of K that a block has in a round: all of them where K is not cut.
struct Round {
  int first_part, last_part;  // excluded
  int group, end;

  template <class T>
  __device__ static Round of(const TileWork& work, int block, int round, const T&) {
    const int groups = groups_of(work.args.shape);
    Round r;
    r.first_part = T::kCut ? (round * work.blocks + block) * kRoundParts : 0;
    r.last_part = r.first_part + (T::kCut ? kRoundParts : kParts);
    r.group = first_group(groups, r.first_part);
    r.end = first_group(groups, r.last_part);
    return r;
  }
};
template <class T>
__device__ int rounds_of(const TileWork& work) {
  return T::kCut ? kParts / kRoundParts / work.blocks : 1;
}

/// Adds the bias to the sums of four experts and rounds them. Written out for the two types that
/// logits have, because it is inlined many times.
__device__ inline void store_four(const RouterGemmArgs& args, int token, int expert, float4 sums) {
  const RouterGemmShape& shape = args.shape;
  if (token >= shape.tokens || expert >= shape.experts) return;
  float logits[] = {sums.x, sums.y, sums.z, sums.w};
  const int64_t at = int64_t{token} * shape.experts + expert;
  const int there = min(4, shape.experts - expert);
  const bool is_whole = shape.experts % 4 == 0, is_wide = shape.out == DType::f32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float bias = 0;
    if (args.bias && i < there) {
      bias = is_wide ? static_cast<const float*>(args.bias)[expert + i]
                     : bf16_to_float(static_cast<const uint16_t*>(args.bias)[expert + i]);
    }
    logits[i] += bias;
  }
  if (is_wide) {
    auto* const to = static_cast<float*>(args.logits) + at;
    if (is_whole) {
      *reinterpret_cast<float4*>(to) = {logits[0], logits[1], logits[2], logits[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < there) to[i] = logits[i];
    }
    return;
  }
  auto* const to = static_cast<uint16_t*>(args.logits) + at;
  uint32_t bits[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) bits[i] = float_to_bf16(logits[i]);
  if (is_whole) {
    *reinterpret_cast<uint2*>(to) = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < there) to[i] = static_cast<uint16_t>(bits[i]);
  }
}

/// One thread fills the ring. Of what tiles of the cluster share, each brings a slice.
template <class T>
__device__ void fill_ring(const CUtensorMap& x, const CUtensorMap& w, const TileWork& work,
                          const Place& place, typename T::Shared& shared) {
  const int token_rows = T::kTokens / work.expert_tiles;
  const int expert_rows = T::kExperts / work.token_tiles;
  uint16_t with_tokens = 0, with_experts = 0;
  for (int i = 0; i < work.expert_tiles; ++i) {
    with_tokens |= static_cast<uint16_t>(1 << place.rank_of(work, place.token, i));
  }
  for (int i = 0; i < work.token_tiles; ++i) {
    with_experts |= static_cast<uint16_t>(1 << place.rank_of(work, i, place.expert));
  }
  const auto copy = [&](uint32_t to, const CUtensorMap& map, int column, int row, uint64_t* full,
                        uint16_t blocks, uint64_t policy) {
    if ((blocks & (blocks - 1)) == 0) {
      copy_tile(to, &map, column, row, shared_address(full), policy);
    } else {
      copy_tile(to, &map, column, row, shared_address(full), policy, blocks);
    }
  };
  const uint64_t keep = evict_last(), once = evict_normal();
  Ring ring{T::kStages};
  for (int i = 0; i < rounds_of<T>(work); ++i) {
    const auto round = Round::of(work, place.block, i, T());
    for (int group = round.group; group < round.end; group += kStageGroups, ring.advance()) {
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      uint64_t* const full = &shared.full[ring.stage];
      arrive_expecting(full, T::kStageBytes);
      const uint32_t to = shared_address(shared.stages[ring.stage]);
      const int column = group * kGroup * 2, slice = place.expert * token_rows,
                expert_slice = place.token * expert_rows;
      copy(to + slice * kRowBytes, x, column, place.first_token + slice, full, with_tokens, once);
      copy(to + (T::kTokens + expert_slice) * kRowBytes, w, column,
           place.first_expert + expert_slice, full, with_experts, keep);
    }
  }
  // A block stays until its neighbours have said that they have read what it brought them.
  for (int i = 0; i < T::kStages; ++i, ring.advance()) {
    wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
  }
}

/// A lane's fragments of x of a stage, operand a of its groups' steps. Row g of a warp's fragment
/// is the token whose bits are g's, turned by one, so that eight lanes meet all banks.
__device__ inline int token_of_lane() {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  return g / 2 + g % 2 * 4;
}
struct StageOfTokens {
  uint32_t a[kStageGroups][2][4];

  StageOfTokens() = default;
  /// `rows`: the warp's first.
  __device__ explicit StageOfTokens(uint32_t rows) {
    const int t = static_cast<int>(threadIdx.x) % 4, row = token_of_lane();
#pragma unroll
    for (int i = 0; i < kStageGroups; ++i) {
      const uint32_t from = rows + row * kRowBytes + ((i * 4 + t) ^ row) * 16;
      const uint4 low = load_shared(from), high = load_shared(from + 8 * kRowBytes);
      set(a[i][0], low.x, high.x, low.y, high.y);
      set(a[i][1], low.z, high.z, low.w, high.w);
    }
  }

 private:
  __device__ static void set(uint32_t (&to)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
};

/// The sums of a warp's 16 tokens. Lane 4g + t has of tokens g and g + 8 (as fragments have them)
/// of each 16 experts those from 4t on, in two fours.
template <int kExperts>
struct TokenSums {
  float of[kExperts / 2] = {};

  __device__ float4 four(int sixteen, int high) const {
    const int i = sixteen * 8 + high * 2;
    return {of[i], of[i + 1], of[i + 4], of[i + 5]};
  }
  __device__ void clear() {
#pragma unroll
    for (float& sum : of) sum = 0;
  }
  __device__ void add(const TokenSums& other) {
#pragma unroll
    for (int i = 0; i < kExperts / 2; ++i) of[i] += other.of[i];
  }
};

}  // namespace moegate::router_gemm
