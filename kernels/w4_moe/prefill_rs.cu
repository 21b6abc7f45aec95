// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// The w4 products for experts with more than a few rows, on wgmma with weights as operand a in
// registers, decoded there (int4 scaled in bf16, too), and rows as operand b. A tile is 256 rows of
// weights times up to 128 routed rows of an expert. The rows that it really has are shared out
// evenly, in steps of 8: no block of padding is multiplied.
//
// Blocks stay. One warpgroup copies into a ring: rows of x by asynchronous copies, a tile's weights
// by one bulk copy (a copy for each panel took 15 % more). Four multiply, 64 rows of weights each:
// while products of one run, others decode. Two that took turns between two products waited for
// their decoding: on an H100 they took 14 % more with 16 rows of an expert, 9 to 20 % with 64, 3 to
// 5 % with 256 and more. To decode a whole unit ahead, not half of one, is worth 5 % up to 64
// columns; beyond, the sums leave no registers for it. Two units for a stage, not one, are worth
// 6 % with 1 to 4 rows of an expert, 2 % with 16 and 64, 1 % beyond (H200 18fde39d, layers).
// Addresses of operands and barriers are computed once: 1.5 % (0 to 5, products, 2c6a15a2).
//
// Floor at few rows: the weights, read once. Decoding them keeps it from that: with 16 rows of an
// expert 68 % of the issue slots are taken, and 51 % of DRAM's bytes. At many: the products at
// wgmma's rate, for gpt-oss-20b's gate-up of 8192 tokens 1.13 ms at the 1.78 GHz that an H100 had,
// of 1.82 ms. The rest is decoding, copies and the output's way: with two warpgroups 1.42 ms were
// products alone, 1.64 with copies and decoding. Taking turns at the tensor cores cost 4 %, and
// tiles of 128 rows of weights times 256 of x were bound by the copies of x.
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma_rs.cuh"
#include "kernels/w4_moe/product_output.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kMultipliers = 512, kCopiers = 128, kThreads = kMultipliers + kCopiers;
constexpr int kMultiplierRegisters = 112, kCopierRegisters = 32;
constexpr int kPanelGroup = kMultipliers / 32;  // of a tile: a panel for each warp
constexpr int kMostStages = 16, kSharedBytes = 227 * 1024;
constexpr int kStageUnits = 2;   // of K
constexpr int kUnitsAhead = 16;  // of weights, while down in a chain waits for x

/// What a block's threads share, ahead of the ring.
struct Shared {
  uint64_t full[kMostStages], empty[kMostStages];
  TileOfRows tiles[kMostStages];  // written with a tile's first stage
  ExpertTiles all;
  StagedProduct staged[kMultipliers / 128];
};

struct PrefillArgs {
  W4Args args;
  PackedWeights weights;
};

/// The ring of stages, which lies behind what is shared, in one size for all tiles. A stage is two
/// units of K, so that waits, fences and arrivals come once for both.
template <class W>
struct Stages {
  static constexpr int kWeightBytes = kPanelGroup * W::kUnitBytes;  // of a unit
  int row_bytes, stage_bytes, count;                                // the first: of a unit
  uint8_t* first;
  uint32_t first_rows;  // as an operand

  /// `columns`: of the widest product, which reads as many rows of x, there or not.
  __device__ Stages(int columns, uint8_t* behind, uint8_t* end) : first(behind) {
    row_bytes = columns * kLineBytes;
    stage_bytes = (kStageUnits * (row_bytes + kWeightBytes) + 1023) / 1024 * 1024;
    count = min(kMostStages, static_cast<int>(end - behind) / stage_bytes);
    first_rows = uniform(operand(shared_address(first)));
  }
  /// Rows of x of both units, then weights.
  __device__ uint8_t* rows(int stage, int unit) const { return first + rows_at(stage, unit); }
  __device__ uint32_t rows_operand(int stage, int unit) const {
    return first_rows + (rows_at(stage, unit) >> 4);
  }
  __device__ uint8_t* weights(int stage, int unit) const {
    return first + (stage + 1) * stage_bytes - (kStageUnits - unit) * kWeightBytes;
  }

 private:
  __device__ int rows_at(int stage, int unit) const {
    return stage * stage_bytes + unit * row_bytes;
  }
};

/// Tiles that multiply the same rows follow each other, so that they run at once.
template <class W>
__device__ __forceinline__ void copy(const PrefillArgs& prefill, Shared& shared,
                                     const Stages<W>& stages) {
  constexpr int kCopies = kMostTileRows / (kCopiers / 8);
  const W4Args& args = prefill.args;
  const W4Shape& shape = args.shape;
  const int thread = static_cast<int>(threadIdx.x) - kMultipliers;
  const bool one_lane = elected(), starts = uniform(thread / 32) == 0 && one_lane;
  const int piece = thread % 8, units = units_of(shape);
  const int groups = panel_groups(shape, kPanelGroup), end = shared.all.all() * groups;
  Ring ring{stages.count};
  for (int item = blockIdx.x; item < end; item += gridDim.x) {
    const TileOfRows tile = shared.all[item / groups];
    const int group = item % groups;
    const uint8_t* weights = prefill.weights.units + (int64_t{tile.expert} * groups + group) *
                                                         units * Stages<W>::kWeightBytes;
    const int bytes = min(kPanelGroup, panels_of(shape) - group * kPanelGroup) * W::kUnitBytes;
    uint32_t from[kCopies];  // pieces of x
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = thread / 8 + i * (kCopiers / 8);
      if (row >= tile.rows) break;
      const int id = args.sorted_token_ids[tile.first + row];
      from[i] = static_cast<uint32_t>(shape.source(id)) * (shape.k / 8) + piece;
    }
    if (shape.down && shape.early && item == static_cast<int>(blockIdx.x)) {
      if (starts) prefetch_bytes(weights, min(units, kUnitsAhead) * Stages<W>::kWeightBytes);
      wait_for_dependency();
    }
    for (int unit = 0; unit < units; unit += kStageUnits, ring.advance()) {
      const int here = min(kStageUnits, units - unit);
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      uint64_t* full = &shared.full[ring.stage];
      if (starts) {
        if (unit == 0) shared.tiles[ring.stage] = tile;
        arrive_expecting(full, here * bytes);
      }
#pragma unroll 1
      for (int u = 0; u < here; ++u) {
        if (starts) {
          copy_bytes(stages.weights(ring.stage, u),
                     weights + int64_t{unit + u} * Stages<W>::kWeightBytes, bytes, full);
        }
        const bool there = (unit + u) * kUnitK + piece * 8 < shape.k;
        const uint32_t to =
            shared_address(stages.rows(ring.stage, u)) + piece_at(thread / 8, piece);
#pragma unroll
        for (int i = 0; i < kCopies; ++i) {
          if (thread / 8 + i * (kCopiers / 8) >= tile.rows) break;
          const uint16_t* x =
              args.x + (int64_t{from[i]} + (there ? (unit + u) * (kUnitK / 8) : 0)) * 8;
          copy_async<16>(to + i * (kCopiers / 8) * kLineBytes, x, there);
        }
      }
      arrive_after_copies(full);
    }
  }
  wait_for_dependency();  // without a tile, too: the launch behind relies on all before this one
}

/// A warpgroup's products in a tile. Each warp decodes for the next ones while some run: a whole
/// unit, or, where sums take many registers, half of one.
template <int kColumns, bool kWide, class W>
class Multiplier {
 public:
  using Sums = float[kColumns / 2];

  __device__ Multiplier(int units, Shared& shared, const Stages<W>& stages, Ring& ring)
      : left_(units),
        full_(uniform(shared_address(shared.full))),
        empty_(uniform(shared_address(shared.empty))),
        stages_(stages),
        ring_(ring) {}

  /// All of K, whose first stage is there.
  __device__ __forceinline__ void run(Sums& sums) {
    Operands a[2];
    load<0>();
    decode<0>(a[0]);
    while (left_ > 0) {
      step<0>(sums, a[0], a[1]);
      if (kParts == 1 && left_ == 0) break;
      step<1>(sums, a[1], a[0]);
      if constexpr (kParts == 2) {
        if (left_ == 0) break;
        step<2>(sums, a[0], a[1]);
        step<3>(sums, a[1], a[0]);
      }
    }
    wait_products<0>();
    arrive_warp(empty_ + last_ * 8);
  }

 private:
  static constexpr int kParts = kColumns > 64 ? 2 : 1;  // of a unit
  static constexpr int kWords = 4 / kParts;             // 16 of K each
  using Operands = uint32_t[kWords][4];

  /// Of a stage's steps in turn: multiplies `now`, and decodes what comes next.
  template <int kStep>
  __device__ __forceinline__ void step(Sums& sums, const Operands& now, Operands& next) {
    constexpr int kUnit = kStep / kParts, kPart = kStep % kParts;
    constexpr bool kEndsUnit = kPart == kParts - 1;
    constexpr bool kEndsStage = kEndsUnit && kUnit == kStageUnits - 1;
    if constexpr (kStep == 0) fence_for_products();
    start<kUnit, kPart>(sums, now);
    const int stage = ring_.stage;
    if constexpr (kEndsUnit) {
      --left_;
      if (kEndsStage || left_ == 0) ring_.advance();
      if (left_ > 0) {
        if (kEndsStage) wait_barrier(full_ + ring_.stage * 8, ring_.phase);
        load<(kUnit + 1) % kStageUnits>();
      }
    }
    wait_products<1>();  // `next` is free, and the stage before
    if (kStep == 0 && last_ >= 0) arrive_warp(empty_ + last_ * 8);
    if (kEndsStage || (kEndsUnit && left_ == 0)) last_ = stage;
    if (left_ > 0) decode<kEndsUnit ? 0 : kPart + 1>(next);
  }

  template <int kUnit>
  __device__ __forceinline__ void load() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    unit_ = unit_in_shared<W>(stages_.weights(ring_.stage, kUnit) + warp * W::kUnitBytes);
  }
  template <int kPart>
  __device__ __forceinline__ void decode(Operands& to) const {
    const uint32_t words[] = {unit_.codes.x, unit_.codes.y, unit_.codes.z, unit_.codes.w};
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int word = kPart * kWords + i;
      uint32_t scales[2];
      W::template scales_of<kWide>(unit_.scales, word / 2, scales);
      W::template decode<kWide>(words[word], scales, to[i]);
    }
  }
  template <int kUnit, int kPart>
  __device__ __forceinline__ void start(Sums& sums, const Operands& a) const {
    const uint32_t rows = stages_.rows_operand(ring_.stage, kUnit);
    begin_products();
#pragma unroll
    for (int i = 0; i < kWords; ++i)
      multiply_rs<kColumns>(sums, a[i], rows + 2 * (kPart * kWords + i));
    commit_products();
  }

  int left_, last_ = -1;
  uint32_t full_, empty_;  // barriers of stage 0
  Unit<W> unit_;
  const Stages<W>& stages_;
  Ring& ring_;
};

/// The tiles from `item` on, and those that are narrower. Each width has a loop of its own: of
/// several products in one loop ptxas would make one after the other.
template <int kColumns, bool kWide, class W>
__device__ __forceinline__ void multiply_tiles(const W4Args& args, int item, Shared& shared,
                                               const Stages<W>& stages, Ring& ring) {
  const int groups = panel_groups(args.shape, kPanelGroup);
  const int end = shared.all.wider_than(kWide ? 0 : kColumns - kRowStep) * groups;
  for (; item < end; item += gridDim.x) {
    wait_barrier(&shared.full[ring.stage], ring.phase);
    const TileOfRows tile = shared.tiles[ring.stage];
    const ProductOutput<W> out(args, tile,
                               item % groups * kPanelGroup + warpgroup() * kProductPanels,
                               shared.staged[warpgroup()]);
    float sums[kColumns / 2] = {};
    Multiplier<kColumns, kWide, W>(units_of(args.shape), shared, stages, ring).run(sums);
    out.template write<kColumns>(sums);
  }
  if constexpr (!kWide && kColumns > kRowStep)
    multiply_tiles<kColumns - kRowStep, kWide, W>(args, item, shared, stages, ring);
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
    const W4Args& args = prefill.args;
    if (!args.shape.down) wait_for_dependency();  // for the sorted rows
    allow_dependents();
    shared.all.find<kThreads>(args);
    uint8_t* const behind = align_shared(reinterpret_cast<uint8_t*>(&shared) + sizeof(Shared));
    const bool wide = is_wide<W>(prefill.weights);
    const Stages<W> stages(wide ? kMostTileRows : shared.all.most_columns(), behind,
                           raw + kSharedBytes);
    if (warpgroup() < kMultipliers / 128) {
      take_registers<kMultiplierRegisters>();
      Ring ring{stages.count};
      const int item = static_cast<int>(blockIdx.x);
      // Half of them begin late: else all would write at once, tile by tile.
      if (warpgroup() % 2 == 1 && units_of(args.shape) > stages.count / 2 * kStageUnits &&
          item < shared.all.all() * panel_groups(args.shape, kPanelGroup))
        wait_barrier(&shared.full[stages.count / 2], 0);
      if (W::kMayBeWide && wide) {
        multiply_tiles<kMostTileRows, W::kMayBeWide, W>(args, item, shared, stages, ring);
      } else {
        multiply_tiles<kMostTileRows, false, W>(args, item, shared, stages, ring);
      }
    } else {
      leave_registers<kCopierRegisters>();
      copy<W>(prefill, shared, stages);
    }
  }
}

void launch(const W4Args& args, const PackedWeights& weights, const Launch& where) {
  const PrefillArgs prefill{args, weights};
  with_format(args.shape, [&]<class W>() {
    const auto kernel = prefill_rs_kernel<W>;
    allow_shared(kernel, kSharedBytes);
    launch_early_if(args.shape.early, kernel, static_cast<unsigned>(where.device.processors),
                    kThreads, kSharedBytes, where.stream, prefill);
  });
}

std::string unsupported(const W4Shape& shape, const DeviceFacts&) {
  if (shape.experts > kMostExperts) return fmt::format("takes up to {} experts", kMostExperts);
  return {};
}

}  // namespace

const PackedKernel kPrefillRs = {
    .name = "prefill_rs",
    .help =
        "weights decoded into the registers of wgmma, tiles of the rows that an expert really has",
    .scaling = W4Scaling::in_bf16,
    .group = kPanelGroup,
    .launch = launch,
    .unsupported = unsupported};

namespace {
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, kPrefillRs>());
const Kernel<W4Down> down(packed_spec<W4Down, kPrefillRs>());
}  // namespace
}  // namespace moegate::w4_moe
