// SPDX-License-Identifier: Apache-2.0
// How prefill's stages are filled. Whoever copies asks for what it must know of a tile while the
// tile before is under way: a chain of two loads would else stand at the start of every tile.
#pragma once

#include "kernels/moe_gemm/gathered_rows.cuh"
#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

struct Maps {
  CUtensorMap weights;  // in tiles of kWeightRows
  CUtensorMap rows;     // sorted order: in tiles of 64 rows
};

template <int kCluster, class Out>
__device__ void gather(const MoeGemmArgs& args, Shared<Out>& shared) {
  const Tiles<kCluster, Out> tiles(args);
  const int thread = threadIdx.x - Roles<Order::tokens>::kMultipliers;
  Ring ring{Out::kStages};
  for (int index = tiles.first; index < tiles.all; index += tiles.step) {
    const Place place = tiles.get(index);
    const int32_t* ids = args.sorted_token_ids + tiles.existing(place).row;
    const int there = tiles.is_there(place) ? place.halves * kHalfTokens : 0;
    GatheredRows<kTokens> rows(args, args.shape.k, thread, [&](int row) {
      return row < there ? __ldg(ids + row) : args.shape.rows();  // in L1: read a tile ago (Asked)
    });
    rows.for_slices(args.shape.k_groups(), [&](int slice, int ahead) {
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      // The last group of blocks' scale factors is whole.
      const bool inside = !kScaledOnce<Out> || slice * kMoeGroup + thread % 8 * 16 < args.shape.k;
      rows.start(shared_address(shared.stages[ring.stage]) + kWeightBytes, ahead, inside);
      arrive_after_copies(&shared.full[ring.stage]);
      ring.advance();
    });
  }
}

/// What a copier must know of a tile.
template <int kCluster, class Out>
struct Asked {
  static constexpr int kEach = 2;  // rows
  int ids[kEach];
  int expert, neighbours_expert, last_half;  // the last: id of its first row

  __device__ Asked(const MoeGemmArgs& args, const Tiles<kCluster, Out>& tiles, int index,
                   int thread) {
    const Place place = tiles.existing(tiles.get(index));
    const int32_t* of_rows = args.sorted_token_ids + place.row;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      ids[i] = i < place.halves ? __ldg(of_rows + thread + i * kHalfTokens) : args.shape.rows();
    last_half = __ldg(of_rows + (place.halves - 1) * kHalfTokens);
    expert = __ldg(args.expert_ids + place.block());
    neighbours_expert = __ldg(args.expert_ids + tiles.neighbour(place.block()));
  }
};

/// Scale factors of a tile; where they begin, in elements.
template <Order kOrder>
struct FactorCopies {
  static constexpr int kEach = 2;
  int ids[kEach];  // R or more: padding, whose factors are any
  uint32_t of_rows[kEach], of_weights;

  template <int kCluster, class Out>
  __device__ FactorCopies(const MoeGemmArgs& args, const Asked<kCluster, Out>& asked, int first_row,
                          const ProductColumns& columns, int thread) {
    const MoeGemmShape& s = args.shape;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      ids[i] = asked.ids[i];
      const int row =
          kOrder == Order::sorted ? first_row + thread + i * kHalfTokens : s.source(ids[i]);
      of_rows[i] = row * s.k_groups();
    }
    // Beyond the last column: any factor, nothing is written.
    const int column = thread % kProducts == 0 ? columns.first : columns.second;
    const int n_group = min(column / kMoeGroup, s.n_groups() - 1);
    of_weights = (asked.expert * s.n_groups() + n_group) * s.k_groups();
  }
  /// Of group g, in the stage that is `stages` after the first one of all.
  template <class Out>
  __device__ void start(const MoeGemmArgs& args, int thread, int g, uint32_t stages,
                        Shared<Out>& shared, int stage) const {
    Factors& to = shared.factors[stage];
    const bool routing = args.routing_weights && g == args.shape.k_groups() - 1;
    const RowFactorPlaces places(args.shape);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (ids[i] >= args.shape.rows()) continue;
      const int row = thread + i * kHalfTokens;
      if (places.starts(stages))
        copy_batch(places.batch,
                   shared_address(&shared.row_factors[places.get(stages) + row * places.batch]),
                   args.x_scales + of_rows[i] + g);
      if (routing)
        copy_async<4>(shared_address(&to.routing[row]), args.routing_weights + ids[i], true);
    }
    if (thread < kProducts)
      copy_async<4>(shared_address(&to.weights[thread]), args.weight_scales + of_weights + g, true);
  }

 private:
  static __device__ void copy_batch(uint32_t floats, uint32_t to, const float* from) {
    if (floats == 4) {
      copy_async<16>(to, from, true);
    } else if (floats == 2) {
      copy_async<8>(to, from, true);
    } else {
      copy_async<4>(to, from, true);
    }
  }
};

/// Scale factors that follow the sum, with the last stage of a tile. Beyond the last column and of
/// rows of padding: any factor, nothing is written.
struct FactorCopiesOnce {
  static constexpr int kThreads = 64;  // Roles::kCopiers
  int ids[2], expert, column;

  template <int kCluster, class Out>
  __device__ FactorCopiesOnce(const MoeGemmArgs&, const Asked<kCluster, Out>& asked, int,
                              const ProductColumns& columns, int)
      : ids{asked.ids[0], asked.ids[1]}, expert(asked.expert), column(columns.first) {
    static_assert(!Out::kGateWithUp);  // the second product's are next to them
  }
  template <class Out>
  __device__ void start(const MoeGemmArgs& args, int thread, int g, uint32_t, Shared<Out>& shared,
                        int stage) const {
    if (g < args.shape.k_groups() - 1) return;
    FactorsOnce& to = shared.factors[stage];
#pragma unroll 1
    for (int at = thread; at < kColumns; at += kThreads) {
      copy_async<4>(shared_address(&to.columns[at]),
                    args.weight_factor(expert, min(column + at, args.shape.n - 1)), true);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int id = min(ids[i], args.shape.rows() - 1);
      const uint32_t at = shared_address(&to.rows[thread + i * kHalfTokens]);
      copy_async<4>(at, args.x_factor(id), true);
      if (args.routing_weights) copy_async<4>(at + kTokens * 4, args.routing_weights + id, true);
    }
  }
};

/// Whether one copy brings a stage's weights.
template <int kCluster, class Out>
constexpr bool kWeightsAtOnce = kCluster == 1 && !Out::kGateWithUp;
/// Rows of a copy of weights.
template <int kCluster, class Out>
constexpr int kWeightRows = kWeightsAtOnce<kCluster, Out> ? kColumns : kProductColumns;

/// A stage's weights, from rows `first` and `second` on. Two blocks with the same expert copy a
/// half each for both.
template <int kCluster, class Out>
__device__ void copy_weights(const Maps& maps, bool shared_weights, int rank, int g, int first,
                             int second, uint32_t to, uint64_t* full) {
  if constexpr (kWeightsAtOnce<kCluster, Out>) {
    copy_tile(to, &maps.weights, g * kMoeGroup, first, full);
    return;
  }
  constexpr int kBytes = kWeightBytes / 2;
  if (kCluster == 2 && shared_weights) {
    constexpr uint16_t kBoth = 3;
    copy_tile(to + rank * kBytes, &maps.weights, g * kMoeGroup, rank == 0 ? first : second,
              shared_address(full), evict_normal(), kBoth);
  } else {
    copy_tile(to, &maps.weights, g * kMoeGroup, first, full);
    copy_tile(to + kBytes, &maps.weights, g * kMoeGroup, second, full);
  }
}

/// Of the biases that stage g of a tile has: in the last stage those of its columns.
template <class Out>
__device__ int bias_bytes_of(const MoeGemmShape& shape, int column, int g) {
  if (!kBiased<Out> || g < shape.k_groups() - 1) return 0;
  return min(kColumns, shape.n - column) * 2;
}

/// Weights, scale factors, biases, and rows in sorted order.
template <Order kOrder, int kCluster, class Out>
__device__ void copy(const Maps& maps, const MoeGemmArgs& args, const Out& out,
                     Shared<Out>& shared) {
  const Tiles<kCluster, Out> tiles(args);
  if (tiles.first >= tiles.all) return;
  const int thread = threadIdx.x - Roles<kOrder>::kFirstCopier;
  const bool one_lane = elected(), starts = uniform(thread / 32) == 0 && one_lane;
  Ring ring{Out::kStages};
  Asked<kCluster, Out> next(args, tiles, tiles.first, thread);
  const int groups = args.shape.k_groups();
  uint32_t stages = 0;  // of the tiles before
  for (int index = tiles.first; index < tiles.all; index += tiles.step, stages += groups) {
    const Asked<kCluster, Out> asked = next;
    Place place = tiles.get(index);
    const int halves =
        tiles.is_there(place) ? place.halves - (asked.last_half >= args.shape.rows()) : 0;
    place = tiles.existing(place);
    const auto columns = product_columns<Out>(args.shape, place);
    using Copies = std::conditional_t<kScaledOnce<Out>, FactorCopiesOnce, FactorCopies<kOrder>>;
    const Copies factors(args, asked, place.row, columns, thread);
    const int weight_row = asked.expert * args.shape.n;
    const int row_bytes = kOrder == Order::sorted ? halves * kHalfRowBytes : 0;
    if (index + tiles.step < tiles.all)
      next = Asked<kCluster, Out>(args, tiles, index + tiles.step, thread);
    for (int g = 0; g < groups; ++g, ring.advance()) {
      const uint32_t stage = shared_address(shared.stages[ring.stage]);
      uint64_t* full = &shared.full[ring.stage];
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      if (starts) {
        shared.halves[ring.stage] = halves;
        const int bias_bytes = bias_bytes_of<Out>(args.shape, columns.first, g);
        arrive_expecting(full, kWeightBytes + row_bytes + bias_bytes);
        if constexpr (kBiased<Out>) {
          const uint16_t* bias = out.bias + (weight_row + columns.first);
          if (bias_bytes > 0)
            copy_bytes(shared.factors[ring.stage].bias, reinterpret_cast<const uint8_t*>(bias),
                       bias_bytes, full);
        }
        copy_weights<kCluster, Out>(maps, asked.expert == asked.neighbours_expert, tiles.rank, g,
                                    weight_row + columns.first, weight_row + columns.second, stage,
                                    full);
        for (int at = 0; at < row_bytes; at += kHalfRowBytes)
          copy_tile(stage + kWeightBytes + at, &maps.rows, g * kMoeGroup,
                    place.row + at / kMoeGroup, full);
      }
      factors.start(args, thread, g, stages + g, shared, ring.stage);
      arrive_after_copies(full);
    }
  }
}

}  // namespace moegate::moe_gemm::prefill
