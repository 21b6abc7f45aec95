// SPDX-License-Identifier: Apache-2.0
// How swap_ab's sums leave the registers. Of 64 and 128 rows: through shared memory, so that rows
// are written in long pieces. Of 16 and 32: every warp turns its 16 columns by itself, without
// barriers; where K is split, after each block of the cluster added up its share of the columns.
#pragma once

#include <type_traits>

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/named_barriers.cuh"
#include "kernels/moe_gemm/swap_ab/tiles.cuh"

namespace moegate::moe_gemm::swap_ab {

using namespace cuda;

template <class C>
__device__ void sync_consumers() {
  sync_barrier<C::kConsumers>(kStagingBarrier);
}

__device__ inline float routing_weight(const MoeGemmArgs& args, int id) {
  return args.routing_weights && id < args.shape.rows() ? __ldg(args.routing_weights + id) : 1;
}

/// Of a row that scale factors follow the sum of.
__device__ inline float x_factor(const MoeGemmArgs& args, int id) {
  return id < args.shape.rows() ? __ldg(args.x_factor(id)) : 0;
}

/// Factors or biases of the two columns that a thread has of its warp's 16, from `first` on; any
/// beyond N.
struct ColumnFactors {
  float low, high;

  __device__ void load(const MoeGemmArgs& args, int expert, int first) {
    const int column = first + threadIdx.x % 32 / 4, last = args.shape.n - 1;
    low = __ldg(args.weight_factor(expert, min(column, last)));
    high = __ldg(args.weight_factor(expert, min(column + 8, last)));
  }
  __device__ void load_bias(const MoeGemmArgs& args, int expert, int first) {
    const int column = first + threadIdx.x % 32 / 4, last = args.shape.n - 1;
    const BiasedArgs& biased = with_bias(args);
    low = bf16_to_float(__ldg(biased.bias_of(expert, min(column, last))));
    high = bf16_to_float(__ldg(biased.bias_of(expert, min(column + 8, last))));
  }
};

struct OutputRow {
  int id;  // row of out; R or more for padding
  float weight;
};
struct FactoredRow : OutputRow {
  float x_factor;
};

/// Rows are written in pieces of 16 bytes next to each other.
template <class C>
class StagedOutput {
 public:
  __device__ StagedOutput(const MoeGemmArgs& args, const Cut&, uint8_t* shared)
      : args_(args),
        staged_(reinterpret_cast<uint16_t*>(shared + C::kOutputAt)),
        rows_(reinterpret_cast<Row*>(shared + C::kOutputAt + C::kStagedRows * C::kPitch * 2)) {}

  /// Before the sums are ready. Two sets in turn: of the last tile's rows some may still be
  /// written.
  __device__ void begin(const Tile& tile, int) {
    turn_ ^= 1;
    const int i = threadIdx.x;
    if constexpr (C::kOnce || C::kBiased) {
      const int expert = __ldg(args_.expert_ids + tile.block);
      const int first = tile.column + threadIdx.x / 32 * 16;
      if constexpr (C::kOnce) columns_.load(args_, expert, first);
      if constexpr (C::kBiased) bias_.load_bias(args_, expert, first);
    }
    if (i >= C::kTokens) return;
    const int id = __ldg(args_.sorted_token_ids + tile.block * C::kTokens + i);
    if constexpr (C::kFactorApart) {
      rows()[i] = {{id, routing_weight(args_, id)}, x_factor(args_, id)};
    } else {
      rows()[i] = {id, routing_weight(args_, id)};
      if constexpr (C::kOnce) rows()[i].weight *= x_factor(args_, id);
    }
  }

  template <int First = 0>
  __device__ void write(const Tile& tile, const typename C::Sum (&sums)[C::kTokens / 2]) {
    constexpr int kPieces = C::kColumns / 8;
    sync_consumers<C>();  // the rows before are written, and where these go to is there
    stage<First>(sums);
    sync_consumers<C>();
    for (int i = threadIdx.x; i < C::kStagedRows * kPieces; i += C::kConsumers) {
      const int row = i / kPieces, id = rows()[First + row].id, column = i % kPieces * 8;
      if (id >= args_.shape.rows() || tile.column + column >= args_.shape.n) continue;
      auto* to = args_.out + int64_t{id} * args_.shape.n + tile.column + column;
      *reinterpret_cast<uint4*>(to) =
          *reinterpret_cast<const uint4*>(staged_ + row * C::kPitch + column);
    }
    if constexpr (First + C::kStagedRows < C::kTokens) write<First + C::kStagedRows>(tile, sums);
  }

 private:
  using Row = std::conditional_t<C::kFactorApart, FactoredRow, OutputRow>;

  __device__ Row* rows() const { return rows_ + turn_ * C::kTokens; }

  template <int First>
  __device__ void stage(const typename C::Sum (&sums)[C::kTokens / 2]) {
    const int lane = threadIdx.x % 32, column = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = First / 2; i < (First + C::kStagedRows) / 2; ++i) {
      const int row = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = static_cast<float>(sums[i]);
      if constexpr (C::kOnce) sum *= i / 2 % 2 == 0 ? columns_.low : columns_.high;
      if constexpr (C::kFactorApart) sum *= rows()[row].x_factor;
      if constexpr (C::kBiased) sum += i / 2 % 2 == 0 ? bias_.low : bias_.high;
      staged_[(row - First) * C::kPitch + column + i / 2 % 2 * 8] =
          float_to_bf16(sum * rows()[row].weight);
    }
  }

  const MoeGemmArgs& args_;
  uint16_t* staged_;
  Row* rows_;
  int turn_ = 0;
  ColumnFactors columns_;  // kOnce
  ColumnFactors bias_;     // kBiased
};

/// An 8 x 8 matrix, two neighbours of a row in each lane, row by row: its transpose.
__device__ inline uint32_t transposed(float first, float second) {
  uint32_t to;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(pack_bf16(first, second)));
  return to;
}

/// Rounds and writes 8 rows, from `first` on, of the warp's 16 columns, from `column` on. Lane i
/// has what is known of row i in `lane_row`. `sums` as products leave them: column lane / 4 (x, y)
/// and 8 more (z, w), rows lane % 4 * 2 (x, z) and the next.
__device__ inline void write_octet(const MoeGemmArgs& args, const OutputRow& lane_row, int first,
                                   int column, const float4& sums) {
  const int lane = threadIdx.x % 32;
  const float even = __shfl_sync(~0u, lane_row.weight, first + lane % 4 * 2);
  const float odd = __shfl_sync(~0u, lane_row.weight, first + lane % 4 * 2 + 1);
  const int id = __shfl_sync(~0u, lane_row.id, first + lane / 4);
  // Now a lane has of row lane / 4 the columns lane % 4 * 2 and the next, and 8 more. Two lanes
  // trade, so that each has four columns next to each other, a quarter of 32 bytes.
  const uint32_t low = transposed(sums.x * even, sums.y * odd);
  const uint32_t high = transposed(sums.z * even, sums.w * odd);
  const bool upper = lane % 2 != 0;
  const uint32_t traded = __shfl_xor_sync(~0u, upper ? low : high, 1);
  const uint2 four = upper ? uint2{traded, high} : uint2{low, traded};
  const int at = column + (upper ? 8 : 0) + lane % 4 / 2 * 4;
  if (id < args.shape.rows() && at < args.shape.n)
    *reinterpret_cast<uint2*>(args.out + int64_t{id} * args.shape.n + at) = four;
}

/// The sums of 8 rows, from 8 * j on, and 16 columns.
template <int N>
__device__ float4 octet(const float (&sums)[N], int j) {
  return {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
}
template <int N>
__device__ int4 octet(const int (&sums)[N], int j) {
  return {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
}

__device__ inline float4 in_fp32(const float4& sums) {
  return sums;
}
__device__ inline float4 in_fp32(const int4& sums) {
  return {static_cast<float>(sums.x), static_cast<float>(sums.y), static_cast<float>(sums.z),
          static_cast<float>(sums.w)};
}

template <class C>
class WarpOutput {
 public:
  __device__ WarpOutput(const MoeGemmArgs& args, const Cut& cut, uint8_t* shared)
      : args_(args),
        splits_(1 << cut.log_splits),
        log_strips_(kLogWarps - cut.log_splits),
        rank_(static_cast<int>(__clusterRelativeBlockRank())),
        inbox_(reinterpret_cast<Octet*>(shared + C::kOutputAt)),
        arrived_(arrived_barriers<C>(shared)) {
    if constexpr (C::kSplit) cluster_wait();  // all blocks have prepared their barriers
  }

  /// Before the sums are ready. The rows' ids were read a tile ago, if there was one, their weights
  /// are read while the products are made: nothing waits here.
  __device__ void begin(const Tile& tile, int next_block) {
    const int id = next_block_ == tile.block ? next_id_ : id_in(tile.block);
    rows_ = {id, routing_weight(args_, id)};
    if constexpr (C::kOnce || C::kBiased) {
      const int expert =
          next_block_ == tile.block ? next_expert_ : __ldg(args_.expert_ids + tile.block);
      if constexpr (C::kOnce) {
        x_factor_ = x_factor(args_, id);
        columns_.load(args_, expert, column_of(tile));
      }
      if constexpr (C::kBiased) bias_.load_bias(args_, expert, column_of(tile));
      if (next_block >= 0) next_expert_ = __ldg(args_.expert_ids + next_block);
    }
    if (next_block >= 0) next_id_ = id_in(next_block_ = next_block);
  }

  __device__ void write(const Tile& tile, const typename C::Sum (&sums)[C::kTokens / 2]) {
    // One more than the last row that is none of padding.
    const int rows = 32 - __clz(__ballot_sync(~0u, rows_.id < args_.shape.rows()));
    if constexpr (C::kOnce && !C::kFactorApart) rows_.weight *= x_factor_;
    if constexpr (C::kSplit) {
      exchange(sums, rows);
      write_share(tile, rows);
    } else {
#pragma unroll
      for (int j = 0; j < kOctets; ++j)
        if (8 * j < rows) {
          if constexpr (C::kOnce || C::kBiased) {
            const float4 of_rows = in_fp32(octet(sums, j));
            write_octet(args_, rows_, 8 * j, column_of(tile), finished(of_rows, 8 * j));
          } else {
            write_octet(args_, rows_, 8 * j, tile.column + warp() * 16, octet(sums, j));
          }
        }
    }
  }

 private:
  /// Four sums of a lane; whole ones, until all parts are added up.
  using Octet = std::conditional_t<std::is_same_v<typename C::Sum, int>, int4, float4>;
  static constexpr int kWarps = C::kConsumers / 32;  // a strip of 16 columns each
  static constexpr int kLogWarps = kWarps == 8 ? 3 : 2;
  static_assert(kWarps == 1 << kLogWarps);
  static constexpr int kOctets = C::kTokens / 8;

  __device__ static int warp() {
    return threadIdx.x / 32;
  }
  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  __device__ int id_in(int block) const {
    return lane() < C::kTokens ? __ldg(args_.sorted_token_ids + block * C::kTokens + lane())
                               : args_.shape.rows();
  }
  /// Where those 16 columns begin that the warp writes: every strip that write_share() gives it is
  /// the same one.
  __device__ int column_of(const Tile& tile) const {
    if constexpr (!C::kSplit) return tile.column + warp() * 16;
    const int strip = warp() & ((1 << log_strips_) - 1);
    return tile.column + ((rank_ << log_strips_) + strip) * 16;
  }
  __device__ float4 scaled(const float4& sums) const {
    return {sums.x * columns_.low, sums.y * columns_.low, sums.z * columns_.high,
            sums.w * columns_.high};
  }
  /// The sums of rows from `first` on with what follows them: factors, then the bias.
  __device__ float4 finished(float4 sums, int first) const {
    if constexpr (C::kOnce) sums = scaled(sums);
    if constexpr (C::kFactorApart) {
      const float even = __shfl_sync(~0u, x_factor_, first + lane() % 4 * 2);
      const float odd = __shfl_sync(~0u, x_factor_, first + lane() % 4 * 2 + 1);
      sums = {sums.x * even, sums.y * odd, sums.z * even, sums.w * odd};
    }
    if constexpr (C::kBiased) {
      sums = {sums.x + bias_.low, sums.y + bias_.low, sums.z + bias_.high, sums.w + bias_.high};
    }
    return sums;
  }
  /// Where the lane's sums of an octet of rows and a strip of the share lie, from one of the
  /// blocks.
  __device__ Octet* slot(int from, int strip, int j) const {
    return inbox_ + turn_ * (C::kInbox / 4) +
           ((((from << log_strips_) + strip) * kOctets + j) * 32 + lane());
  }

  /// Sends every strip to the block that adds it up. Two inboxes in turn, and no other sign that
  /// one is free: a block that sends the parts of a tile has those of the tile before from all
  /// blocks, and those were sent after every warp there had read the tile before that.
  __device__ void exchange(const typename C::Sum (&sums)[C::kTokens / 2], int rows) {
    sync_consumers<C>();
    if (threadIdx.x == 0) arrive_expecting(&arrived_[turn_], kWarps * 128 * ((rows + 1) / 2));
    const int to = warp() >> log_strips_, strip = warp() - (to << log_strips_);
#pragma unroll
    for (int j = 0; j < kOctets; ++j)
      if (8 * j + lane() % 4 * 2 < rows)
        send(slot(rank_, strip, j), &arrived_[turn_], to, octet(sums, j));
    wait_barrier(&arrived_[turn_], phase_);
    __syncwarp();
  }

  /// The parts in the order of K.
  __device__ void write_share(const Tile& tile, int rows) {
    for (int item = warp(); item < (rows + 7) / 8 << log_strips_; item += kWarps) {
      const int j = item >> log_strips_, strip = item - (j << log_strips_);
      Octet parts[kMostSplits], sum = {0, 0, 0, 0};
#pragma unroll
      for (int from = 0; from < kMostSplits; ++from)
        parts[from] = *slot(min(from, splits_ - 1), strip, j);
#pragma unroll
      for (int from = 0; from < kMostSplits; ++from) {
        const Octet& part = parts[from];
        if (from < splits_) sum = {sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w};
      }
      float4 out = in_fp32(sum);
      if constexpr (C::kOnce || C::kBiased) out = finished(out, 8 * j);
      write_octet(args_, rows_, 8 * j, tile.column + ((rank_ << log_strips_) + strip) * 16, out);
    }
    turn_ ^= 1;
    phase_ ^= turn_ == 0;
  }

  static constexpr int kMostSplits = 8;

  const MoeGemmArgs& args_;
  const int splits_, log_strips_;  // strips: of a block's share of the columns
  const int rank_;
  Octet* inbox_;
  uint64_t* arrived_;
  OutputRow rows_;  // of lane i: row i
  int next_block_ = -1, next_id_ = 0;
  int turn_ = 0;
  uint32_t phase_ = 0;
  // kOnce, kBiased
  int next_expert_;
  float x_factor_;  // of lane i: row i's
  ColumnFactors columns_, bias_;
};

}  // namespace moegate::moe_gemm::swap_ab
