// SPDX-License-Identifier: Apache-2.0
// A tile of tokens by experts whose K is cut over blocks of a cluster. TMA brings rows of x and of
// packed w through a ring; tiles of a cluster that have the same rows get one copy of them.
//
// A block takes two parts of K (parts.cuh) in each round and sends their sums to the blocks that
// add them up, each its share of the tile's rows. So a round's parts come in order, and need the
// memory of two tiles. One block with all of K keeps the sums in its registers instead.
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma_rs.cuh"
#include "kernels/router_gemm/parts.cuh"

namespace moegate::router_gemm {

using namespace cuda;

constexpr int kRoundParts = 2;     // of a block
constexpr int kStageGroups = 2;    // of K
constexpr int kRowBytes = 128;     // of a stage
constexpr int kAdderThreads = 96;  // with 9 warps: 168 registers each

/// What a launch of tiles knows besides the operator's arguments. A cluster is `token_tiles` by
/// `expert_tiles` tiles, each of `blocks` blocks.
struct TileWork {
  RouterGemmArgs args;
  int blocks, expert_tiles, token_tiles;
  int expert_clusters;
};
static_assert(std::has_unique_object_representations_v<TileWork>, "a row's identity");

/// Threads are warpgroups that multiply, 64 tokens by kWarpExperts each; a warp that copies; and
/// where K is cut, those that add.
template <int kTokenGroups, int kExpertGroups, int kExpertsOf, bool kIsCut>
struct CutTile {
  static constexpr bool kCut = kIsCut;
  static constexpr int kTokens = kTokenGroups * 64, kExperts = kExpertsOf;
  static constexpr int kWarpExperts = kExperts / kExpertGroups;
  static constexpr int kWarps = kTokenGroups * kExpertGroups * 4;
  /// Of a warp in the tile.
  __device__ static int first_token(int warp) { return warp % (kTokenGroups * 4) * 16; }
  __device__ static int first_expert(int warp) { return warp / (kTokenGroups * 4) * kWarpExperts; }

  static constexpr int kThreads = (kWarps + 1) * 32 + (kCut ? kAdderThreads : 0);
  static constexpr int kFours = kTokens * kExperts / 4;  // sums
  static constexpr int kStageBytes = (kTokens + kExperts) * kRowBytes;
  static constexpr int kInboxBytes = kCut ? kRoundParts * kFours * 16 : 0;
  static constexpr int kMostStages = (226 * 1024 - kInboxBytes) / kStageBytes;
  static constexpr int kStages = kMostStages < 8 ? kMostStages : 8;

  struct Shared {
    uint8_t stages[kStages][kStageBytes];  // rows of x, then of w
    float4
        inbox[kCut ? kInboxBytes / 16 : 1];  // [parts of a round, rows of the share, experts / 4]
    uint64_t full[kStages], empty[kStages], inbox_full, inbox_empty;
  };
};

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
  /// Adds the products of groups [kFirst, kLast) of a stage; `rows`: experts there.
  template <int kFirst, int kLast>
  __device__ void add_groups(const StageOfTokens& tokens, uint32_t rows) {
    const uint32_t b = operand(rows);
    begin_products();
#pragma unroll
    for (int i = kFirst; i < kLast; ++i) {
      multiply_rs<kExperts>(of, tokens.a[i][0], b + 4 * i);
      multiply_rs<kExperts>(of, tokens.a[i][1], b + 4 * i + 2);
    }
    commit_products();
    wait_products();
  }
};

/// Sends a part's sums, part `part` of a round, to the blocks that add them up.
template <class T>
__device__ void send_part(const TokenSums<T::kWarpExperts>& sums, const TileWork& work,
                          const Place& place, typename T::Shared& shared, int part) {
  const int warp = static_cast<int>(threadIdx.x) / 32, t = static_cast<int>(threadIdx.x) % 4;
  const int share_rows = T::kTokens / work.blocks;
#pragma unroll
  for (int high = 0; high < 2; ++high) {
    const int row = T::first_token(warp) + token_of_lane() + high * 8;
    const int to = place.rank_of(work, place.token, place.expert) - place.block + row % work.blocks;
    const int slot =
        (part * share_rows + row / work.blocks) * (T::kExperts / 4) + T::first_expert(warp) / 4 + t;
    const uint32_t there = shared_address_of(shared_address(shared.inbox + slot), to);
    const uint32_t counter = shared_address_of(shared_address(&shared.inbox_full), to);
#pragma unroll
    for (int i = 0; i < T::kWarpExperts / 16; ++i)
      send(there + i * 64, counter, sums.four(i, high));
  }
}

/// Warps that multiply.
template <class T>
__device__ void multiply_tile(const TileWork& work, const Place& place,
                              typename T::Shared& shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int groups = groups_of(work.args.shape), first_expert = T::first_expert(warp);
  TokenSums<T::kWarpExperts> part_sums, sums;  // the latter where K is not cut
  // Who brings rows to this block: it and its neighbours of the same tokens, of the same experts.
  const int other = lane - work.expert_tiles;
  const int giver = other < 0 ? place.rank_of(work, place.token, lane)
                              : place.rank_of(work, other + (other >= place.token), place.expert);
  const bool gives = lane < work.expert_tiles + work.token_tiles - 1;
  Ring ring{T::kStages};
  for (int i = 0; i < rounds_of<T>(work); ++i) {
    const auto round = Round::of(work, place.block, i, T());
    int part = round.first_part, part_end = first_group(groups, part + 1);
    const auto finish_part = [&] {
      if constexpr (T::kCut) {
        if (part == round.first_part && i > 0) wait_barrier(&shared.inbox_empty, (i - 1) & 1);
        send_part<T>(part_sums, work, place, shared, part - i * work.blocks * kRoundParts);
      } else {
        sums.add(part_sums);
      }
      part_sums.clear();
      part_end = first_group(groups, ++part + 1);
    };
    for (int group = round.group; group < round.end; group += kStageGroups, ring.advance()) {
      wait_barrier(&shared.full[ring.stage], ring.phase);
      const uint32_t stage = shared_address(shared.stages[ring.stage]);
      const StageOfTokens tokens(stage + T::first_token(warp) * kRowBytes);
      const uint32_t rows = uniform(stage + (T::kTokens + first_expert) * kRowBytes);
      while (group == part_end) finish_part();
      if (group + 1 < part_end) {
        part_sums.template add_groups<0, 2>(tokens, rows);
      } else {
        part_sums.template add_groups<0, 1>(tokens, rows);
        if (group + 1 < round.end) {
          while (group + 1 == part_end) finish_part();
          part_sums.template add_groups<1, 2>(tokens, rows);
        }
      }
      __syncwarp();
      if (gives) arrive_at(shared_address_of(shared_address(&shared.empty[ring.stage]), giver));
    }
    while (part < round.last_part) finish_part();
  }
  if constexpr (!T::kCut) {
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      const int token = place.first_token + T::first_token(warp) + token_of_lane() + high * 8;
#pragma unroll
      for (int i = 0; i < T::kWarpExperts / 16; ++i) {
        store_four(work.args, token, place.first_expert + first_expert + i * 16 + lane % 4 * 4,
                   sums.four(i, high));
      }
    }
  }
}

/// Adds up the parts of this block's share of the tile, rows `blocks` apart.
template <class T>
__device__ void add_parts(const TileWork& work, const Place& place, typename T::Shared& shared,
                          int thread) {
  constexpr int kMost = (T::kFours / 2 + kAdderThreads - 1) / kAdderThreads;  // with two blocks
  const int share = T::kFours / work.blocks, rounds = rounds_of<T>(work);
  constexpr int kMany = kRoundParts * 2;  // of the parts, whose number it divides
  const int parts = kRoundParts * work.blocks;
  float4 sums[kMost] = {};
  for (int round = 0; round < rounds; ++round) {
    wait_barrier(&shared.inbox_full, round & 1);
    const bool is_last = round + 1 == rounds;
    if (thread == 0 && !is_last) arrive_expecting(&shared.inbox_full, T::kInboxBytes);
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int at = i * kAdderThreads + thread;
      if (at >= share) break;
#pragma unroll 1
      for (int first = 0; first < parts; first += kMany) {
        float4 more[kMany];
#pragma unroll
        for (int n = 0; n < kMany; ++n) more[n] = shared.inbox[(first + n) * share + at];
#pragma unroll
        for (int n = 0; n < kMany; ++n) {
          sums[i].x += more[n].x, sums[i].y += more[n].y;
          sums[i].z += more[n].z, sums[i].w += more[n].w;
        }
      }
    }
    if (is_last) break;
    __syncwarp();
    const int first = place.rank_of(work, place.token, place.expert) - place.block;
    if (thread % 32 < work.blocks) {
      arrive_at(shared_address_of(shared_address(&shared.inbox_empty), first + thread % 32));
    }
  }
  // From registers whose numbers are constants to a loop, through where this thread read part 0.
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = i * kAdderThreads + thread;
    if (at < share) shared.inbox[at] = sums[i];
  }
#pragma unroll 1
  for (int at = thread; at < share; at += kAdderThreads) {
    const int row = at / (T::kExperts / 4) * work.blocks + place.block;
    const int expert = at % (T::kExperts / 4) * 4;
    store_four(work.args, place.first_token + row, place.first_expert + expert, shared.inbox[at]);
  }
}

/// Grid: clusters, those of the same tokens next to each other.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    tiles_kernel(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap w,
                 const __grid_constant__ TileWork work) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<typename T::Shared>(raw);
  const Place place = Place::of(work, T());
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int sharers = work.expert_tiles + work.token_tiles - 1;
  if (thread == 0) {
    for (int i = 0; i < T::kStages; ++i) {
      init_barrier(&shared.full[i], 1);
      init_barrier(&shared.empty[i], T::kWarps * sharers);
    }
    init_barrier(&shared.inbox_empty, kAdderThreads / 32 * work.blocks);
    prepare_inbox(&shared.inbox_full, T::kInboxBytes);
  }
  if (thread == 32) prefetch_map(&x);
  if (thread == 64) prefetch_map(&w);
  __syncthreads();
  cluster_arrive();
  if (warp == T::kWarps) {
    if (sharers > 1) cluster_wait();
    if (elected()) fill_ring<T>(x, w, work, place, shared);
    __syncwarp();
    if (sharers == 1) cluster_wait();
  } else {
    cluster_wait();
    if (warp < T::kWarps) {
      multiply_tile<T>(work, place, shared);
    } else if constexpr (T::kCut) {
      add_parts<T>(work, place, shared, thread - (T::kWarps + 1) * 32);
    }
  }
}

}  // namespace moegate::router_gemm
