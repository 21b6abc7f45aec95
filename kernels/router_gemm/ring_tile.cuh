// SPDX-License-Identifier: Apache-2.0
// The kernel of tiles, with products always under way: a warp loads the fragments of its next
// stage, and hands the last one back, while those of a stage multiply. A warp that relays tells the
// neighbours once for the block that a stage was read. Sums of parts travel in whole lines.
//
// Who arrives at a barrier in each of its phases, and who waits:
//   full        the block's own filler once, and the bytes of all who fill; each warp that
//               multiplies waits
//   read        each warp that multiplies, once; the relay waits
//   empty       the relay of each block that one's filler brings rows to, its own included; the
//               filler waits
//   inbox_full  one adder, and the bytes of all blocks that share the tile; the adders wait
//   inbox_empty each warp of adders of each block that shares the tile; warps that multiply wait
// None can be a phase ahead of who waits: to arrive again at `read` takes a full stage, which takes
// the filler, which takes the relay; to arrive again at `empty` takes the rows of that same filler.
#pragma once

#include "kernels/router_gemm/split_tile.cuh"

namespace moegate::router_gemm {

/// Threads are warpgroups that multiply, 64 tokens by kWarpExperts each; one whose first warp
/// copies and whose second one relays; and where K is cut, those that add.
template <int kTokenGroups, int kExpertGroups, int kExpertsOf, bool kIsCut>
struct RingTile {
  static constexpr bool kCut = kIsCut;
  static constexpr int kTokens = kTokenGroups * 64, kExperts = kExpertsOf;
  static constexpr int kWarpExperts = kExperts / kExpertGroups;
  static constexpr int kWarps = kTokenGroups * kExpertGroups * 4;
  /// Of a warp in the tile.
  __device__ static int first_token(int warp) { return warp % (kTokenGroups * 4) * 16; }
  __device__ static int first_expert(int warp) { return warp / (kTokenGroups * 4) * kWarpExperts; }

  static constexpr int kAdders = 128;  // threads
  static constexpr int kThreads = (kWarps + 4) * 32 + (kCut ? kAdders : 0);
  /// Where warps that multiply have sums twice: registers of them, and of the others.
  static constexpr int kManyRegisters = kCut || kWarps == 4 ? 0 : 232;
  static constexpr int kFewRegisters = 40;
  static constexpr int kFours = kTokens * kExperts / 4;  // sums
  static constexpr int kStageBytes = (kTokens + kExperts) * kRowBytes;
  static constexpr int kInboxBytes = kCut ? kRoundParts * kFours * 16 : 0;
  static constexpr int kMostStages = (225 * 1024 - kInboxBytes) / kStageBytes;
  static constexpr int kStages = kMostStages < 16 ? kMostStages : 16;

  struct Shared {
    uint8_t stages[kStages][kStageBytes];       // rows of x, then of w
    float4 inbox[kCut ? kInboxBytes / 16 : 1];  // [parts of a round, share of the tile]
    uint64_t full[kStages], empty[kStages], read[kStages], inbox_full, inbox_empty;
  };
  static_assert(kSharedBytes<Shared> <= 227 * 1024);
};

/// In which order the fours of a tile go to the blocks that add them, each one's share behind the
/// other's: as warps hold them, so that a warp sends whole lines. A lane's rows are in octets; a
/// share of four rows takes half of an octet's lanes.
template <class T>
struct ShareOrder {
  int shift;          // of a share's fours
  int halves, lanes;  // of an octet

  __device__ explicit ShareOrder(int blocks)
      : shift(31 - __clz(T::kFours / blocks)),
        halves(T::kTokens / blocks < 8 ? 2 : 1),
        lanes(32 / halves) {}
  __device__ int place_of(int octet, int lane, int sixteen) const {
    return ((octet * halves + lane / lanes) * (T::kExperts / 16) + sixteen) * lanes + lane % lanes;
  }
  struct Four {
    int token, expert;
  };
  __device__ Four at(int place) const {
    const int sixteen = place / lanes % (T::kExperts / 16);
    const int half_octet = place / lanes / (T::kExperts / 16);
    const int lane = half_octet % halves * lanes + place % lanes, g = lane / 4;
    return {half_octet / halves * 8 + g / 2 + g % 2 * 4, sixteen * 16 + lane % 4 * 4};
  }
};

/// Sends a part's sums, part `part` of a round, to the blocks that add them up.
template <class T>
__device__ void send_lines(const TokenSums<T::kWarpExperts>& sums, const TileWork& work,
                           const Place& place, typename T::Shared& shared, int part) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const ShareOrder<T> order(work.blocks);
  const int first = place.rank_of(work, place.token, place.expert) - place.block;
#pragma unroll
  for (int high = 0; high < 2; ++high) {
    const int at =
        order.place_of(T::first_token(warp) / 8 + high, lane, T::first_expert(warp) / 16);
    const int to = first + (at >> order.shift);
    const int slot = (part << order.shift) + (at & ((1 << order.shift) - 1));
    const uint32_t there = shared_address_of(shared_address(shared.inbox + slot), to);
    const uint32_t counter = shared_address_of(shared_address(&shared.inbox_full), to);
#pragma unroll
    for (int i = 0; i < T::kWarpExperts / 16; ++i) {
      send(there + i * order.lanes * 16, counter, sums.four(i, high));
    }
  }
}

/// Reads of the sums stay behind the wait before it.
template <int kExperts>
__device__ void settle(TokenSums<kExperts>& sums) {
#pragma unroll
  for (int i = 0; i < kExperts / 2; i += 8) {
    float* const of = sums.of + i;
    asm volatile(""
                 : "+f"(of[0]), "+f"(of[1]), "+f"(of[2]), "+f"(of[3]), "+f"(of[4]), "+f"(of[5]),
                   "+f"(of[6]), "+f"(of[7])::"memory");
  }
}

/// Starts the products of a group: `b`, the experts' operand. `add` false: the first of a part.
template <int kExperts>
__device__ void start_products(TokenSums<kExperts>& sums, const uint32_t (&a)[2][4], uint32_t b,
                               bool add) {
  begin_products();
  multiply_rs<kExperts>(sums.of, a[0], b, add);
  multiply_rs<kExperts>(sums.of, a[1], b + 2);
  commit_products();
}

/// What a warp that multiplies knows from stage to stage.
template <class T>
struct Multiplier {
  const TileWork& work;
  const Place& place;
  typename T::Shared& shared;
  int warp = uniform(threadIdx.x / 32), groups = groups_of(work.args.shape);
  Ring ring{T::kStages};
  TokenSums<T::kWarpExperts> part_sums, sums;  // the latter where K is not cut
  int part = 0, part_end = 0, round = 0;
  bool fresh = true;  // part_sums has no product yet

  __device__ void start_round(const Round& of) {
    part = of.first_part, part_end = first_group(groups, part + 1);
  }
  /// part_sums are of all that was started.
  __device__ __forceinline__ void finish_part(const Round& of) {
    wait_products();
    settle(part_sums);
    if constexpr (T::kCut) {
      if (fresh) part_sums.clear();
      if (part == of.first_part && round > 0) wait_barrier(&shared.inbox_empty, (round - 1) & 1);
      send_lines<T>(part_sums, work, place, shared,
                    part - of.first_part + place.block * kRoundParts);
    } else {
      if (!fresh) sums.add(part_sums);
    }
    fresh = true;
    part_end = first_group(groups, ++part + 1);
  }
  __device__ void load(StageOfTokens& to) {
    wait_barrier(&shared.full[ring.stage], ring.phase);
    to =
        StageOfTokens(shared_address(shared.stages[ring.stage]) + T::first_token(warp) * kRowBytes);
  }
  __device__ __forceinline__ void start_group(const Round& of, int group, const uint32_t (&a)[2][4],
                                              uint32_t b) {
    while (group == part_end) finish_part(of);
    start_products(part_sums, a, b, !fresh);
    fresh = false;
  }
  /// Starts the products of the stage whose fragments `now` has, and loads the next ones' behind
  /// the products of the last stage, which then is handed back.
  __device__ __forceinline__ void step(const Round& of, int group, const StageOfTokens& now,
                                       StageOfTokens& next) {
    const int stage = ring.stage;
    const uint32_t rows =
        shared_address(shared.stages[stage]) + (T::kTokens + T::first_expert(warp)) * kRowBytes;
    const uint32_t b = operand(uniform(rows));
    start_group(of, group, now.a[0], b);
    if (group + 1 < of.end) {
      start_group(of, group + 1, now.a[1], b + 4);
      wait_products<2>();
    } else {
      wait_products<1>();
    }
    if (group > of.group) arrive_warp(&shared.read[stage > 0 ? stage - 1 : T::kStages - 1]);
    ring.advance();
    if (group + kStageGroups < of.end) load(next);
  }
  __device__ __forceinline__ void finish_round(const Round& of) {
    wait_products();
    settle(part_sums);
    while (part < of.last_part) finish_part(of);
    if (of.group < of.end) {
      arrive_warp(&shared.read[ring.stage > 0 ? ring.stage - 1 : T::kStages - 1]);
    }
    ++round;
  }
};
static_assert(kStageGroups == 2, "what step() takes");

/// Warps that multiply.
template <class T>
__device__ void multiply_ring(const TileWork& work, const Place& place,
                              typename T::Shared& shared) {
  Multiplier<T> m{work, place, shared};
  StageOfTokens even, odd;
  for (int i = 0; i < rounds_of<T>(work); ++i) {
    const auto round = Round::of(work, place.block, i, T());
    m.start_round(round);
    if (round.group < round.end) m.load(even);
    for (int group = round.group; group < round.end;) {
      m.step(round, group, even, odd);
      group += kStageGroups;
      if (group >= round.end) break;
      m.step(round, group, odd, even);
      group += kStageGroups;
    }
    m.finish_round(round);
  }
  if constexpr (!T::kCut) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int expert = place.first_expert + T::first_expert(m.warp) + lane % 4 * 4;
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      const int token = place.first_token + T::first_token(m.warp) + token_of_lane() + high * 8;
#pragma unroll
      for (int s = 0; s < T::kWarpExperts / 16; ++s) {
        store_four(work.args, token, expert + s * 16, m.sums.four(s, high));
      }
    }
  }
}

/// The relay tells those who bring rows to this block, itself and its neighbours of the same
/// tokens and of the same experts, that its warps have read a stage: one arrival a stage for each.
template <class T>
__device__ void relay_reads(const TileWork& work, const Place& place, typename T::Shared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32, other = lane - work.expert_tiles;
  const int giver = other < 0 ? place.rank_of(work, place.token, lane)
                              : place.rank_of(work, other + (other >= place.token), place.expert);
  const bool gives = lane < work.expert_tiles + work.token_tiles - 1;
  Ring ring{T::kStages};
  for (int i = 0; i < rounds_of<T>(work); ++i) {
    const auto round = Round::of(work, place.block, i, T());
    for (int group = round.group; group < round.end; group += kStageGroups, ring.advance()) {
      wait_barrier(&shared.read[ring.stage], ring.phase);
      if (gives) arrive_at(shared_address_of(shared_address(&shared.empty[ring.stage]), giver));
    }
  }
}

/// Adds up the parts of this block's share of the tile.
template <class T>
__device__ void add_lines(const TileWork& work, const Place& place, typename T::Shared& shared,
                          int thread) {
  constexpr int kMost = (T::kFours / 2 + T::kAdders - 1) / T::kAdders;  // with two blocks
  constexpr int kMany = kRoundParts * 2;  // of the parts, whose number it divides
  const int share = T::kFours / work.blocks, rounds = rounds_of<T>(work);
  const int parts = kRoundParts * work.blocks;
  float4 sums[kMost] = {};
  for (int round = 0; round < rounds; ++round) {
    wait_barrier(&shared.inbox_full, round & 1);
    const bool is_last = round + 1 == rounds;
    if (thread == 0 && !is_last) arrive_expecting(&shared.inbox_full, T::kInboxBytes);
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int at = i * T::kAdders + thread;
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
    const int at = i * T::kAdders + thread;
    if (at < share) shared.inbox[at] = sums[i];
  }
  const ShareOrder<T> order(work.blocks);
#pragma unroll 1
  for (int at = thread; at < share; at += T::kAdders) {
    const auto four = order.at(place.block * share + at);
    store_four(work.args, place.first_token + four.token, place.first_expert + four.expert,
               shared.inbox[at]);
  }
}

/// Grid: clusters, those of the same tokens next to each other.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    ring_tiles_kernel(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap w,
                      const __grid_constant__ TileWork work) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<typename T::Shared>(raw);
  const Place place = Place::of(work, T());
  const int thread = static_cast<int>(threadIdx.x), warp = uniform(thread / 32);
  const int sharers = work.expert_tiles + work.token_tiles - 1;
  if (thread == 0) {
    for (int i = 0; i < T::kStages; ++i) {
      init_barrier(&shared.full[i], 1);
      init_barrier(&shared.empty[i], sharers);
      init_barrier(&shared.read[i], T::kWarps);
    }
    init_barrier(&shared.inbox_empty, T::kAdders / 32 * work.blocks);
    prepare_inbox(&shared.inbox_full, T::kInboxBytes);
  }
  if (thread == 32) prefetch_map(&x);
  if (thread == 64) prefetch_map(&w);
  __syncthreads();
  cluster_arrive();
  if (warp >= T::kWarps && warp < T::kWarps + 4) {
    if constexpr (T::kManyRegisters > 0) leave_registers<T::kFewRegisters>();
    // What a block brings may arrive in others; where not, who fills waits last. A block that is
    // alone is launched without clusters, and the wait is then a __syncthreads().
    const bool is_filler = warp == T::kWarps;
    if (!is_filler || sharers > 1 || !T::kCut) cluster_wait();
    if (is_filler) {
      if (elected()) fill_ring<T>(x, w, work, place, shared);
      __syncwarp();
    } else if (warp == T::kWarps + 1) {
      relay_reads<T>(work, place, shared);
    }
    if (is_filler && sharers == 1 && T::kCut) cluster_wait();
  } else if (warp < T::kWarps) {
    if constexpr (T::kManyRegisters > 0) take_registers<T::kManyRegisters>();
    cluster_wait();
    multiply_ring<T>(work, place, shared);
  } else if constexpr (T::kCut) {
    cluster_wait();
    add_lines<T>(work, place, shared, thread - (T::kWarps + 4) * 32);
  }
}

}  // namespace moegate::router_gemm
