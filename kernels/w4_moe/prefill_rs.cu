// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// The w4 products for experts with more than a few rows, on wgmma with weights as operand a in
// registers, decoded there (int4 scaled in bf16, too), and rows as operand b. A tile is 256 rows of
// weights times up to 128 routed rows of an expert. The rows that it really has are shared out
// evenly, in steps of 8: no block of padding is multiplied.
//
// Blocks stay. One warpgroup copies into a ring: rows of x by asynchronous copies, a tile's weights
// by one bulk copy (a copy for each panel took 15 % more). Two multiply, each two times 64 rows of
// weights: it decodes the one while the products of the other run.
//
// Floor at many rows: the products at wgmma's rate. On an H100 the products of gpt-oss-20b's
// gate-up of 8192 tokens alone took 1.42 ms, with copies and decoding 1.64 (1.13 are the rate at
// the clock that it had, 1.78 GHz); the rest is the output's way, which a warpgroup does not hide
// behind the other's products. With some 16 rows of an expert it waits for its own decoding, in two
// chains on an SM, and is up to a quarter slower than triton_kernels there. find_rows() and
// number_tiles() take some 15 us with 128 experts. Taking turns at the tensor cores cost 4 %, and
// tiles of 128 rows of weights times 256 of x were bound by the copies of x.
#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/named_barriers.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma_rs.cuh"
#include "kernels/w4_moe/tile.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kMultipliers = 256, kCopiers = 128, kThreads = kMultipliers + kCopiers;
constexpr int kMultiplierRegisters = 232, kCopierRegisters = 40;
constexpr int kPanelGroup = 16;               // of a tile: 256 rows of weights
constexpr int kProductPanels = 4;             // of a product: 64 rows of weights
constexpr int kProducts = 2;                  // of a warpgroup
constexpr int kMostRows = 128, kRowStep = 8;  // of x
constexpr int kStagedRows = 64;               // of a product's output at a time
constexpr int kMostStages = 32, kMostExperts = 512;
constexpr int kSharedBytes = 227 * 1024;

/// What multipliers must know of a tile.
struct TileOfRows {
  int expert, first, rows;  // place of its first row; how many
};

/// A warpgroup's output on its way: some rows of a product, and of the tile the routed rows and
/// their weights.
struct Staged {
  alignas(16) uint8_t out[kStagedRows * (kProductPanels * kPanelRows + 8) * 2];
  int ids[kMostRows];
  float weights[kMostRows];
};

/// Experts by the columns of their products, the widest first, and their tiles of rows.
struct Shared {
  uint64_t full[kMostStages], empty[kMostStages];
  TileOfRows tiles[kMostStages];                           // written with a tile's first stage
  int first_row[kMostExperts], rows[kMostExperts];         // of each expert
  int expert[kMostExperts], first_tile[kMostExperts + 1];  // in that order; all tiles
  int first_of_step[kMostRows / kRowStep + 1];             // tile; [n]: kRowStep * (n + 1)
  int experts, most_columns;
  Staged staged[kMultipliers / 128];
};

struct PrefillArgs {
  W4Args args;
  PackedWeights weights;
};

__device__ inline int tiles_of(int rows) {
  return (rows + kMostRows - 1) / kMostRows;
}
/// The columns of the products of an expert's tiles, in steps.
__device__ inline int steps_of(int rows) {
  const int tiles = tiles_of(rows);
  return tiles == 0 ? 0 : ((rows + tiles - 1) / tiles + kRowStep - 1) / kRowStep;
}

/// Which rows an expert has: blocks of one expert follow each other, padding ends the last.
__device__ void find_rows(const W4Args& args, Shared& shared) {
  const W4Shape& shape = args.shape;
  for (int e = threadIdx.x; e < shape.experts; e += kThreads) shared.rows[e] = 0;
  __syncthreads();
  const int blocks = *args.padded_rows / shape.block;
  for (int b = threadIdx.x; b < blocks; b += kThreads) {
    const int expert = args.expert_ids[b];
    if (b == 0 || args.expert_ids[b - 1] != expert) shared.first_row[expert] = b * shape.block;
  }
  __syncthreads();
  for (int b = threadIdx.x; b < blocks; b += kThreads) {
    const int expert = args.expert_ids[b];
    if (b + 1 < blocks && args.expert_ids[b + 1] == expert) continue;
    const int32_t* ids = args.sorted_token_ids + int64_t{b} * shape.block;
    int some = 0, none = shape.block;  // the first row of padding is behind the one, or the other
    while (none - some > 1) {
      const int middle = (some + none) / 2;
      (ids[middle] < shape.rows() ? some : none) = middle;
    }
    shared.rows[expert] = b * shape.block + none - shared.first_row[expert];
  }
  __syncthreads();
}

/// Puts experts in order and numbers their tiles, by one warp.
__device__ void number_tiles(int experts, Shared& shared) {
  const int lane = threadIdx.x % 32;
  int count = 0, tiles = 0, most = 0;
  for (int steps = kMostRows / kRowStep; steps > 0; --steps) {
    if (lane == 0) shared.first_of_step[steps - 1] = tiles;
    for (int first = 0; first < experts; first += 32) {
      const int e = first + lane, rows = e < experts ? shared.rows[e] : 0;
      const bool is_now = steps_of(rows) == steps;
      const uint32_t now = __ballot_sync(~0u, is_now);
      int through = is_now ? tiles_of(rows) : 0;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, through, step);
        if (lane >= step) through += other;
      }
      if (is_now) {
        const int place = count + __popc(now & ((1u << lane) - 1));
        shared.expert[place] = e;
        shared.first_tile[place] = tiles + through - tiles_of(rows);
      }
      count += __popc(now);
      tiles += __shfl_sync(~0u, through, 31);
    }
    if (most == 0 && count > 0) most = steps * kRowStep;
  }
  if (lane > 0) return;
  shared.first_tile[count] = tiles;
  shared.experts = count;
  shared.most_columns = most;
}

__device__ TileOfRows tile_of_rows(const Shared& shared, int tile) {
  int place = 0, beyond = shared.experts;  // the last whose first tile is at most this one
  while (beyond - place > 1) {
    const int middle = (place + beyond) / 2;
    (shared.first_tile[middle] <= tile ? place : beyond) = middle;
  }
  const int expert = shared.expert[place], rows = shared.rows[expert];
  const int columns = steps_of(rows) * kRowStep;
  const int begin = (tile - shared.first_tile[place]) * columns;
  return {expert, shared.first_row[expert] + begin, min(columns, rows - begin)};
}

/// The ring of stages, which lies behind what is shared, in one size for all tiles.
template <class W>
struct Stages {
  static constexpr int kWeightBytes = kPanelGroup * W::kUnitBytes;
  int stage_bytes, count;
  uint8_t* first;

  /// `columns`: of the widest product, which reads as many rows of x, there or not.
  __device__ Stages(int columns, uint8_t* behind, uint8_t* end) : first(behind) {
    stage_bytes = (columns * kLineBytes + kWeightBytes + 1023) / 1024 * 1024;
    count = min(kMostStages, static_cast<int>(end - behind) / stage_bytes);
  }
  /// Rows of x, then weights.
  __device__ uint8_t* stage(int i) const { return first + i * stage_bytes; }
  __device__ uint8_t* weights(int i) const { return stage(i) + stage_bytes - kWeightBytes; }
};

/// The tiles of a block, one behind the other. Those that multiply the same rows run at once; last
/// come those of an expert's last panels, where one product each is enough.
struct Items {
  int groups, tiles, whole;  // of panels; of rows; groups for two products each

  __device__ Items(const W4Shape& shape, const Shared& shared)
      : groups(panel_groups(shape, kPanelGroup)), tiles(shared.first_tile[shared.experts]) {
    const int last = panels_of(shape) - (groups - 1) * kPanelGroup;
    whole = last > kPanelGroup / 2 ? groups : groups - 1;
  }
  __device__ int all() const { return tiles * groups; }
  __device__ int tile(int item) const {
    return is_whole(item) ? item / whole : item - tiles * whole;
  }
  __device__ int group(int item) const { return is_whole(item) ? item % whole : whole; }
  /// The first item behind those of the first tiles, of those with so many products.
  __device__ int end(int first_tiles, int products) const {
    return products == kProducts ? first_tiles * whole
                                 : tiles * whole + first_tiles * (groups - whole);
  }

 private:
  __device__ bool is_whole(int item) const { return item < tiles * whole; }
};

template <class W>
__device__ __forceinline__ void copy(const PrefillArgs& prefill, Shared& shared,
                                     const Stages<W>& stages) {
  constexpr int kCopies = kMostRows / (kCopiers / 8);
  const W4Args& args = prefill.args;
  const W4Shape& shape = args.shape;
  const int thread = static_cast<int>(threadIdx.x) - kMultipliers;
  const bool one_lane = elected(), starts = uniform(thread / 32) == 0 && one_lane;
  const int piece = thread % 8, units = units_of(shape);
  const Items items(shape, shared);
  Ring ring{stages.count};
  for (int item = blockIdx.x; item < items.all(); item += gridDim.x) {
    const TileOfRows tile = tile_of_rows(shared, items.tile(item));
    const uint8_t* weights =
        prefill.weights.units +
        (int64_t{tile.expert} * items.groups + items.group(item)) * units * Stages<W>::kWeightBytes;
    uint32_t from[kCopies];  // pieces of x
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = thread / 8 + i * (kCopiers / 8);
      if (row >= tile.rows) break;
      const int id = args.sorted_token_ids[tile.first + row];
      from[i] = static_cast<uint32_t>(shape.source(id)) * (shape.k / 8) + piece;
    }
    for (int unit = 0; unit < units; ++unit, ring.advance()) {
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      uint64_t* full = &shared.full[ring.stage];
      if (starts) {
        if (unit == 0) shared.tiles[ring.stage] = tile;
        arrive_expecting(full, Stages<W>::kWeightBytes);
        copy_bytes(stages.weights(ring.stage), weights + int64_t{unit} * Stages<W>::kWeightBytes,
                   Stages<W>::kWeightBytes, full);
      }
      const bool there = unit * kUnitK + piece * 8 < shape.k;
      const uint32_t to = shared_address(stages.stage(ring.stage)) + piece_at(thread / 8, piece);
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        if (thread / 8 + i * (kCopiers / 8) >= tile.rows) break;
        const uint16_t* x = args.x + (int64_t{from[i]} + (there ? unit * (kUnitK / 8) : 0)) * 8;
        copy_async<16>(to + i * (kCopiers / 8) * kLineBytes, x, there);
      }
      arrive_after_copies(full);
    }
  }
}

/// The stage may be filled again.
__device__ inline void release(Shared& shared, int stage) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive_barrier(&shared.empty[stage]);
}

/// The products of a warpgroup that has `kCount` of them in a tile.
template <int kColumns, int kCount, bool kWide, class W>
class Multiplier {
 public:
  using Sums = float[kProducts][kColumns / 2];

  __device__ Multiplier(int units, Shared& shared, const Stages<W>& stages, Ring& ring)
      : left_(units), shared_(shared), stages_(stages), ring_(ring) {}

  /// All of K, whose first stage is there.
  __device__ __forceinline__ void run(Sums& sums) {
    uint32_t a[kProducts][4][4];
    decode<0>(a[0]);
    while (left_ > 0) {
      fence_for_products();
      start<0>(sums[0], a[0]);
      wait_products<1>();  // a[1] is free, and the stage before
      if (last_ >= 0) release(shared_, last_);
      decode<1>(a[1]);
      start<1>(sums[1], a[1]);
      last_ = ring_.stage;
      ring_.advance();
      const bool is_more = --left_ > 0;
      if (is_more) wait_barrier(&shared_.full[ring_.stage], ring_.phase);
      wait_products<1>();  // a[0] is free
      if (is_more) decode<0>(a[0]);
    }
    wait_products<0>();
    release(shared_, last_);
  }

 private:
  template <int kProduct>
  __device__ __forceinline__ void decode(uint32_t (&to)[4][4]) const {
    if constexpr (kProduct >= kCount) return;
    const int panel = static_cast<int>(threadIdx.x) / 32 + kProduct * kProductPanels * 2;
    decode_unit<kWide, W>(stages_.weights(ring_.stage) + panel * W::kUnitBytes, to);
  }
  template <int kProduct>
  __device__ __forceinline__ void start(float (&sums)[kColumns / 2], const uint32_t (&a)[4][4]) {
    const uint32_t rows = uniform(operand(shared_address(stages_.stage(ring_.stage))));
    begin_products();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kProduct < kCount) multiply_rs<kColumns>(sums, a[i], rows + 2 * i);
    }
    commit_products();
  }

  int left_, last_ = -1;
  Shared& shared_;
  const Stages<W>& stages_;
  Ring& ring_;
};

/// A warpgroup's way to the output of a tile. What it has to look up it does before the products.
template <class W>
class Output {
 public:
  __device__ Output(const W4Args& args, const TileOfRows& tile, int first_panel, Staged& staged)
      : args_(args), staged_(staged), first_panel_(first_panel), rows_(tile.rows) {
    id_ = thread() < rows_ ? args.sorted_token_ids[tile.first + thread()] : 0;
    weight_ = args.shape.down && thread() < rows_ ? args.routing_weights[id_] : 1;
#pragma unroll
    for (int i = 0; i < 2 * kProducts; ++i) {
      const int row = weight_row(args.shape, panel(i / 2) + warp(), lane() / 4 + i % 2 * 8);
      biases_[i / 2][i % 2] =
          has_bias<W>(args, row)
              ? bf16_to_float(args.bias[int64_t{tile.expert} * args.shape.n + row])
              : 0.0f;
    }
  }

  template <int kColumns, int kCount>
  __device__ __forceinline__ void write(const float (&sums)[kProducts][kColumns / 2]) const {
    staged_.ids[thread()] = id_;
    staged_.weights[thread()] = weight_;
    sync();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int first = 0; first < kColumns; first += kStagedRows) {
        if (first >= rows_) break;
        stage<kColumns>(first, sums[i], biases_[i]);
        sync();
        copy_out(first, panel(i) * panel_columns(args_.shape));
        sync();
      }
    }
  }

 private:
  __device__ static int thread() {
    return static_cast<int>(threadIdx.x) % 128;
  }
  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int warp() {
    return thread() / 32;
  }
  __device__ static void sync() {
    sync_barrier<128>(kStagingBarrier + warpgroup());
  }
  __device__ int panel(int product) const {
    return first_panel_ + product * 2 * kProductPanels;
  }
  __device__ int pitch() const {
    return out_pitch(args_.shape, kProductPanels) * 2;
  }

  /// Matrices of 8 rows of weights and 8 of x, turned.
  template <int kColumns>
  __device__ __forceinline__ void stage(int first, const float (&sums)[kColumns / 2],
                                        const float (&biases)[2]) const {
    const bool down = args_.shape.down;
    const uint32_t to =
        shared_address(staged_.out) + lane() * pitch() + warp() * panel_columns(args_.shape) * 2;
#pragma unroll
    for (int begin = 0; begin < kStagedRows; begin += 32) {
      if (first + begin >= kColumns) break;
      uint32_t low[4] = {}, high[4] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first + begin + i * 8;
        if (row >= kColumns) break;
        const float a = sums[row / 2] + biases[0], b = sums[row / 2 + 1] + biases[0];
        const float c = sums[row / 2 + 2] + biases[1], d = sums[row / 2 + 3] + biases[1];
        if (down) {
          const auto w = *reinterpret_cast<const float2*>(staged_.weights + row + lane() % 4 * 2);
          low[i] = pack_bf16(w.x * a, w.y * b);
          high[i] = pack_bf16(w.x * c, w.y * d);
        } else {
          low[i] = pack_bf16(swiglu(args_.shape, a, c), swiglu(args_.shape, b, d));
        }
      }
      store_turned(to + begin * pitch(), low[0], low[1], low[2], low[3]);
      if (down) store_turned(to + begin * pitch() + 16, high[0], high[1], high[2], high[3]);
    }
  }

  __device__ void copy_out(int first, int column) const {
    const int outputs = args_.shape.outputs();
    const int pieces = kProductPanels * panel_columns(args_.shape) / 8, piece = thread() % pieces;
    column += piece * 8;
    for (int row = thread() / pieces; row < min(kStagedRows, rows_ - first); row += 128 / pieces) {
      uint16_t* to = args_.out + int64_t{staged_.ids[first + row]} * outputs + column;
      const uint8_t* from = staged_.out + row * pitch() + piece * 16;
      if (outputs % 8 == 0) {
        if (column < outputs) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int i = 0; i < 8 && column + i < outputs; ++i)
          to[i] = reinterpret_cast<const uint16_t*>(from)[i];
      }
    }
  }

  const W4Args& args_;
  Staged& staged_;
  int first_panel_, rows_, id_;
  float weight_, biases_[kProducts][2];
};

/// The tiles from `item` on, up to those that are narrower. Each width has a loop of its own: of
/// several products in one loop ptxas would make one after the other.
template <int kColumns, int kCount, bool kWide, class W>
__device__ __forceinline__ void multiply_tiles(const W4Args& args, const Items& items, int& item,
                                               Shared& shared, const Stages<W>& stages,
                                               Ring& ring) {
  const bool is_last = kWide || kColumns == kRowStep;
  const int end =
      items.end(is_last ? items.tiles : shared.first_of_step[kColumns / kRowStep - 2], kCount);
  for (; item < end; item += gridDim.x) {
    wait_barrier(&shared.full[ring.stage], ring.phase);
    const TileOfRows tile = shared.tiles[ring.stage];
    const Output<W> out(args, tile, items.group(item) * kPanelGroup + warpgroup() * kProductPanels,
                        shared.staged[warpgroup()]);
    using M = Multiplier<kColumns, kCount, kWide, W>;
    typename M::Sums sums = {};
    M(units_of(args.shape), shared, stages, ring).run(sums);
    out.template write<kColumns, kCount>(sums);
  }
}

/// With so many products each, and their successors with one.
template <class W, int kCount = kProducts, int kColumns = kMostRows>
__device__ __forceinline__ void multiply_all(const W4Args& args, const Items& items, int& item,
                                             Shared& shared, const Stages<W>& stages, Ring& ring) {
  multiply_tiles<kColumns, kCount, false, W>(args, items, item, shared, stages, ring);
  if constexpr (kColumns > kRowStep) {
    multiply_all<W, kCount, kColumns - kRowStep>(args, items, item, shared, stages, ring);
  } else if constexpr (kCount > 1) {
    multiply_all<W, kCount - 1>(args, items, item, shared, stages, ring);
  }
}

template <class W>
__global__ void __launch_bounds__(kThreads, 1)
    prefill_rs_kernel(const __grid_constant__ PrefillArgs prefill) {
  if constexpr (kHasWgmma) {
    extern __shared__ uint8_t raw[];
    auto& shared = aligned_shared<Shared>(raw);
    init_barriers(0, shared.full, kCopiers + 1);
    init_barriers(1, shared.empty, kMultipliers / 32);
    fence_barrier_init();
    find_rows(prefill.args, shared);
    if (threadIdx.x < 32) number_tiles(prefill.args.shape.experts, shared);
    __syncthreads();
    uint8_t* const behind = align_shared(reinterpret_cast<uint8_t*>(&shared) + sizeof(Shared));
    const bool wide = is_wide<W>(prefill.weights);
    const Stages<W> stages(wide ? kMostRows : shared.most_columns, behind, raw + kSharedBytes);
    if (warpgroup() < kMultipliers / 128) {
      take_registers<kMultiplierRegisters>();
      const Items items(prefill.args.shape, shared);
      Ring ring{stages.count};
      int item = blockIdx.x;
      // Warpgroup 1 begins late: else both would write at once, tile by tile.
      if (warpgroup() == 1 && units_of(prefill.args.shape) > stages.count / 2 && item < items.all())
        wait_barrier(&shared.full[stages.count / 2], 0);
      if constexpr (W::kMayBeWide) {
        if (wide) {
          multiply_tiles<kMostRows, 2, true, W>(prefill.args, items, item, shared, stages, ring);
          multiply_tiles<kMostRows, 1, true, W>(prefill.args, items, item, shared, stages, ring);
        }
      }
      multiply_all<W>(prefill.args, items, item, shared, stages, ring);
    } else {
      leave_registers<kCopierRegisters>();
      copy<W>(prefill, shared, stages);
    }
  }
}

template <class P>
void launch(P& problem, const Launch& where) {
  const PrefillArgs prefill{problem.args(W4Scaling::in_bf16), packed_weights(problem, kPanelGroup)};
  with_format(problem.shape, [&]<class W>() {
    const auto kernel = prefill_rs_kernel<W>;
    allow_shared(kernel, kSharedBytes);
    kernel<<<where.device.processors, kThreads, kSharedBytes, stream_of(where)>>>(prefill);
  });
  check_launch("prefill_rs_kernel");
}

std::string unsupported(const W4Shape& shape, const DeviceFacts&) {
  if (shape.experts > kMostExperts) return fmt::format("takes up to {} experts", kMostExperts);
  return {};
}

constexpr const char* kName = "prefill_rs";
constexpr const char* kHelp =
    "weights decoded into the registers of wgmma, tiles of the rows that an expert really has";
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, unsupported, kPanelGroup>(kName, kHelp,
                                                                               launch));
const Kernel<W4Down> down(packed_spec<W4Down, unsupported, kPanelGroup>(kName, kHelp, launch));

}  // namespace
}  // namespace moegate::w4_moe
