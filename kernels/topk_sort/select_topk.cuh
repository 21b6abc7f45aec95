// SPDX-License-Identifier: Apache-2.0
// A warp selects the k experts of one token and weighs them; scoring rules are in topk_sort.h.
//
// Every lane sorts its N scores once; then k times the warp takes the largest head (redux.sync on
// order-preserving integers), and the lowest lane that holds it pops it. Lanes hold ascending
// experts, so "lowest lane first" is the tie rule.
#pragma once

#include <cstdint>

#include "kernels/topk_sort/row_logits.cuh"

namespace moegate::topk_sort {

constexpr int kMaxTopk = 16;
constexpr int kMaxExperts = 512;  // 16 scores per lane

/// Floats as unsigned integers in the same order; 0 stays free for "not there" (it would be a NaN).
__device__ inline uint32_t ordered(float value) {
  const uint32_t bits = float_bits(value);
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}
__device__ inline float from_ordered(uint32_t key) {
  return bits_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}

/// A score and its expert in one integer: larger score first, then lower expert.
__device__ inline uint64_t item_of(float score, int expert) {
  return uint64_t{ordered(score)} << 32 | ~static_cast<uint32_t>(expert);
}
__device__ inline int expert_of(uint64_t item) {
  return static_cast<int>(~static_cast<uint32_t>(item));
}
__device__ inline uint32_t key_of(uint64_t item) {
  return static_cast<uint32_t>(item >> 32);
}

__device__ inline void order_pair(uint64_t& high, uint64_t& low) {
  const uint64_t a = high, b = low;
  high = a > b ? a : b;
  low = a > b ? b : a;
}

/// Batcher's odd-even merge of the two sorted halves of item[Low, Low + Count), every Step-th.
/// Templates rather than loops: every index must be a constant for the items to stay in registers.
template <int Low, int Count, int Step, int N>
__device__ inline void merge_descending(uint64_t (&item)[N]) {
  if constexpr (2 * Step < Count) {
    merge_descending<Low, Count, 2 * Step>(item);
    merge_descending<Low + Step, Count, 2 * Step>(item);
#pragma unroll
    for (int i = Low + Step; i + Step < Low + Count; i += 2 * Step)
      order_pair(item[i], item[i + Step]);
  } else {
    order_pair(item[Low], item[Low + Step]);
  }
}

template <int Low, int Count, int N>
__device__ inline void sort_descending(uint64_t (&item)[N]) {
  if constexpr (Count > 1) {
    sort_descending<Low, Count / 2>(item);
    sort_descending<Low + Count / 2, Count / 2>(item);
    merge_descending<Low, Count, 1>(item);
  }
}

__device__ inline float sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + expf(-x));
}

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

/// The lane's part of the bias, the same for every token: loaded once.
template <int N>
struct LaneBias {
  float value[N];
};
template <bool Grouped, int N>
__device__ inline LaneBias<N> load_bias(const TopkSortArgs& args, int lane) {
  LaneBias<N> bias = {};
  const int first = lane * N, experts = args.shape.experts;
  if (!Grouped || first >= experts) return bias;
  if (experts % N == 0) {
    load_words<N>(args.bias + first, reinterpret_cast<uint32_t*>(bias.value));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (first + i < experts) bias.value[i] = __ldg(args.bias + first + i);
  }
  return bias;
}

/// The two largest scores seen.
struct TopTwo {
  float first = -INFINITY, second = -INFINITY;
  __device__ void add(float score) {
    second = fmaxf(second, fminf(first, score));
    first = fmaxf(first, score);
  }
  __device__ void add_lane(int step) {  // butterfly
    const TopTwo other = {__shfl_xor_sync(kAllLanes, first, step),
                          __shfl_xor_sync(kAllLanes, second, step)};
    second = fmaxf(fmaxf(second, other.second), fminf(first, other.first));
    first = fmaxf(first, other.first);
  }
};

/// How many of the groups before and behind group `group` are better than it, whose score is
/// `mine`; the lower group wins ties. Lane g * lanes has the score of group g.
__device__ inline int better_groups(float mine, int group, int groups, int lanes) {
  int better = 0;
#pragma unroll 8
  for (int g = 0; g < groups; ++g) {
    const float other = __shfl_sync(kAllLanes, mine, g * lanes);
    better += other > mine || (other == mine && g < group);
  }
  return better;
}

/// Bit i: the lane's expert i is of one of the topk_groups groups with the largest sums of their
/// two largest scores.
template <int N>
__device__ inline unsigned in_kept_groups(const float (&score)[N], const TopkSortShape& shape,
                                          int lane) {
  const int groups = shape.groups, width = shape.experts / groups;
  const int lanes = width / N;  // of one group, where groups end at lane borders
  if (width % N == 0 && (lanes & (lanes - 1)) == 0) {
    TopTwo two;
#pragma unroll
    for (int i = 0; i < N; ++i) two.add(score[i]);
    for (int step = 1; step < lanes; step *= 2) two.add_lane(step);
    const int better = better_groups(two.first + two.second, lane / lanes, groups, lanes);
    return better < shape.topk_groups ? ~0u : 0;
  }
  float mine = -INFINITY;
  for (int group = 0; group < groups; ++group) {
    TopTwo two;
#pragma unroll
    for (int i = 0; i < N; ++i)
      if ((lane * N + i) / width == group) two.add(score[i]);
    for (int step = 1; step < kWarp; step *= 2) two.add_lane(step);
    if (lane == group) mine = two.first + two.second;
  }
  const int better = better_groups(mine, lane, groups, 1);
  const unsigned kept = __ballot_sync(kAllLanes, lane < groups && better < shape.topk_groups);
  unsigned experts = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) experts |= (kept >> ((lane * N + i) / width % kWarp) & 1) << i;
  return experts;
}

/// What decides the selection: the logit, or for noaux_tc (`Grouped`) the biased sigmoid. 0 where
/// the expert does not exist or its group was dropped. Everything is computed before it is
/// selected: a branch per element would cost more.
template <bool Grouped, int N>
__device__ inline void make_items(const RawRow<N>& raw, const LaneBias<N>& bias,
                                  const TopkSortShape& shape, int lane, uint64_t (&item)[N]) {
  const int first = lane * N;
  float score[N];
  decode_row(raw, shape.dtype, score);
  if constexpr (Grouped) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float biased = canonical(sigmoid(score[i]) + bias.value[i]);
      score[i] = first + i < shape.experts ? biased : -INFINITY;
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const uint64_t there = item_of(score[i], first + i);
    item[i] = first + i < shape.experts ? there : 0;
  }
  if constexpr (Grouped) {
    if (shape.topk_groups == shape.groups) return;
    const unsigned kept = in_kept_groups(score, shape, lane);
#pragma unroll
    for (int i = 0; i < N; ++i) item[i] = kept >> i & 1 ? item[i] : 0;
  }
}

/// Slot `lane` of a token (lanes below k), before weighing.
struct Chosen {
  int expert;
  float score;        // what it was chosen by
  float denominator;  // softmax without renorm: the sum over all experts of exp(logit - top)
  float top;          // the largest score
};

/// A store under a predicate. Written as an `if`, it becomes a branch and a reconvergence in the
/// selection's loop, whose latency is what a token waits for.
__device__ inline void store_if(bool condition, uint64_t* shared, uint64_t value) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.u32 p, %0, 0;\n"
      "@p st.shared.u64 [%1], %2;\n"
      "}\n" ::"r"(static_cast<uint32_t>(condition)),
      "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "l"(value)
      : "memory");
}

/// `slots`: k words of shared memory that belong to this warp.
template <bool Grouped, int N>
__device__ inline Chosen select_topk(const RawRow<N>& raw, const LaneBias<N>& bias,
                                     const TopkSortShape& shape, uint64_t* slots) {
  const int lane = threadIdx.x % kWarp;
  const unsigned lower_lanes = (1u << lane) - 1;
  uint64_t item[N];
  make_items<Grouped>(raw, bias, shape, lane, item);
  sort_descending<0, N>(item);

  Chosen chosen;
  chosen.denominator = 0;
  if (!Grouped && shape.scoring == Scoring::softmax && !shape.renorm) {
    const float top = from_ordered(__reduce_max_sync(kAllLanes, key_of(item[0])));
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float logit = from_ordered(key_of(item[i]));
      const float part = expf(logit - top);
      // Nothing for what does not exist (a NaN key) and for -infinity, even when it is the top.
      sum += logit > -INFINITY ? part : 0;
    }
    chosen.denominator = warp_sum(sum);
  }
#pragma unroll 1
  for (int slot = 0; slot < shape.topk; ++slot) {
    const uint32_t head = key_of(item[0]);
    const bool holder = head == __reduce_max_sync(kAllLanes, head);
    const unsigned holders = __ballot_sync(kAllLanes, holder);
    const bool winner = holder && (holders & lower_lanes) == 0;
    store_if(winner, &slots[slot], item[0]);
#pragma unroll
    for (int i = 0; i + 1 < N; ++i) item[i] = winner ? item[i + 1] : item[i];
    item[N - 1] = winner ? 0 : item[N - 1];
  }
  __syncwarp();
  const uint64_t mine = slots[lane < shape.topk ? lane : 0];
  chosen.expert = expert_of(mine);
  chosen.score = from_ordered(key_of(mine));
  chosen.top = __shfl_sync(kAllLanes, chosen.score, 0);
  __syncwarp();  // the next token may overwrite the slots now
  return chosen;
}

/// The weight of slot `lane`; every lane of the warp must call it.
template <bool Grouped>
__device__ inline float weight_of(const Chosen& chosen, const TopkSortArgs& args, int token) {
  const int lane = threadIdx.x % kWarp;
  const TopkSortShape& shape = args.shape;
  float numerator = 0;
  if (lane < shape.topk) {
    if constexpr (Grouped) {
      // The biased score has lost bits of the sigmoid, so take the logit again, from L1.
      numerator = sigmoid(load_logit(args, token, chosen.expert));
    } else {
      numerator = chosen.score > -INFINITY ? expf(chosen.score - chosen.top) : 0;
    }
  }
  float denominator = 1;
  if (shape.scoring == Scoring::topk_softmax || shape.renorm) {
    denominator = warp_sum(numerator);
  } else if (shape.scoring == Scoring::softmax) {
    denominator = chosen.denominator;
  }
  return denominator > 0 ? numerator / denominator * shape.scale : 0;
}

/// Calls launch.template operator()<N, Grouped>() with the scores per lane that the experts need.
template <class LaunchOf>
void for_lanes(const TopkSortShape& shape, const LaunchOf& launch) {
  const bool grouped = shape.scoring == Scoring::noaux_tc;
  const auto with = [&]<int N>() {
    grouped ? launch.template operator()<N, true>() : launch.template operator()<N, false>();
  };
  if (shape.experts <= 4 * kWarp) return with.template operator()<4>();
  if (shape.experts <= 8 * kWarp) return with.template operator()<8>();
  with.template operator()<16>();
}

}  // namespace moegate::topk_sort
