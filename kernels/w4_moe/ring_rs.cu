// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The w4 products on wgmma, with weights as operand a in registers, decoded (int4 scaled in bf16,
// too) while the product of the 64 of K before runs, and routed rows as operand b in shared memory,
// where four warpgroups of 64 rows of weights each read them. The form of triton_kernels on Hopper,
// with the tile four times as wide: what limits a narrower one at many rows is reading the rows of
// x, not the weights.
//
// Stages of x and of weights go around a ring, which has as many as fit: with few rows weights come
// from memory, and some 100 KB of them are always on their way. A stage is filled anew when all
// warpgroups have waited for the product before the last, which the barrier of the next unit says
// of all of them.
//
// Floor at many rows: the products at wgmma's rate, with few the weights. On an H200 gpt-oss-120b's
// gate-up of 8192 tokens (a quarter of the rows are padding) kept the tensor cores 57 % busy and
// half of the issue slots. What the rest waits for is not shown yet. It is not the addresses of
// copies (a third fewer instructions: 4 % less time) nor the fence behind them (without it 1 to 4 %
// less). stream_mma is quicker up to 128 tokens.
#include "kernels/cuda/wgmma_rs.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/w4_moe/tile.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kThreads = 512;
constexpr int kTilePanels = kThreads / 32;  // of weights: 256 rows
constexpr int kStageUnits = 2;              // a barrier for 128 of K

template <int kRows, class W>
struct Tile {
  static constexpr int kRowBytes = kRows * kLineBytes;  // of a unit
  static constexpr int kWeightBytes = kTilePanels * W::kUnitBytes;
  static constexpr int kMostBytes = 208 * 1024;
  static constexpr int kFit = kMostBytes / (kStageUnits * (kRowBytes + kWeightBytes));
  static constexpr int kStages = kFit < 8 ? kFit : 8;
  static constexpr int kAhead = kStages - 2;  // on their way
  static constexpr int kSlots = kStages * kStageUnits;
  static constexpr int kOutBytes = kRows * (kTilePanels * kPanelRows + 8) * 2;
  static constexpr int kStagesBytes = kSlots * (kRowBytes + kWeightBytes);
  static constexpr int kBytes = kStagesBytes > kOutBytes ? kStagesBytes : kOutBytes;
  static constexpr int kSharedBytes = kBytes + 1024;  // to begin where the swizzle does
};

struct RingArgs {
  W4Args args;
  PackedWeights weights;
};

template <bool kWide, class W>
__device__ void decode_unit(const uint8_t* unit, uint32_t (&a)[4][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint4 codes = *reinterpret_cast<const uint4*>(unit + lane * 16);
  const uint32_t words[] = {codes.x, codes.y, codes.z, codes.w};
  const auto kept = reinterpret_cast<const typename W::Scales*>(unit + kUnitCodes)[lane / 4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t scales[2];
    W::template scales_of<kWide>(kept, half, scales);
    W::template decode<kWide>(words[2 * half], scales, a[2 * half]);
    W::template decode<kWide>(words[2 * half + 1], scales, a[2 * half + 1]);
  }
}

/// Copies into a block's stages, unit by unit: a thread's pieces of rows of x, its 16 bytes of its
/// warp's codes, and in some lanes of the scales. Addresses go along with the units: worked out
/// anew they were a third of all instructions.
template <int kRows, class W>
class Copies {
 public:
  __device__ Copies(const W4Args& args, const int32_t* ids, int rows, const uint8_t* panel,
                    uint32_t shared)
      : x_first_(args.x),
        weights_(panel + lane() * 16),
        to_rows_(shared + piece_at(row_of(0), piece())),
        to_weights_(shared + kWeightsAt + static_cast<uint32_t>(threadIdx.x) / 32 * W::kUnitBytes +
                    lane() * 16),
        left_k_(args.shape.k) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool there = row_of(i) < rows;
      x_[i] = there
                  ? args.x + int64_t{args.shape.source(ids[row_of(i)])} * args.shape.k + piece() * 8
                  : nullptr;
    }
  }
  /// Starts the copies of the next stage; of none behind K.
  __device__ void start() {
#pragma unroll
    for (int i = 0; i < kStageUnits; ++i) start_unit();
    commit_copies();
  }

 private:
  using T = Tile<kRows, W>;
  static constexpr int kCopies = (kRows * 8 + kThreads - 1) / kThreads;
  static constexpr int kScaleLanes = (W::kUnitBytes - kUnitCodes) / 16;
  static constexpr uint32_t kWeightsAt = T::kSlots * T::kRowBytes;

  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int piece() {
    return static_cast<int>(threadIdx.x) % 8;
  }
  __device__ static int row_of(int i) {
    return static_cast<int>(threadIdx.x) / 8 + i * (kThreads / 8);
  }

  __device__ void start_unit() {
    if (left_k_ <= 0) return;
    const bool there = piece() * 8 < left_k_;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (x_[i] == nullptr) continue;  // of padding, whose products go nowhere
      copy_async<16>(to_rows_ + i * (kThreads / 8) * kLineBytes, there ? x_[i] : x_first_, there);
      x_[i] += kUnitK;
    }
    copy_async<16>(to_weights_, weights_, true);
    if (lane() < kScaleLanes) copy_async<16>(to_weights_ + kUnitCodes, weights_ + kUnitCodes, true);
    weights_ += W::kUnitBytes;
    left_k_ -= kUnitK;
    const bool is_last = ++slot_ == T::kSlots;
    to_rows_ += is_last ? T::kRowBytes * (1 - T::kSlots) : T::kRowBytes;
    to_weights_ += is_last ? T::kWeightBytes * (1 - T::kSlots) : T::kWeightBytes;
    if (is_last) slot_ = 0;
  }

  const uint16_t* x_[kCopies];
  const uint16_t* x_first_;  // of all, where nothing is read
  const uint8_t* weights_;
  uint32_t to_rows_, to_weights_;
  int left_k_, slot_ = 0;
};

/// Where a block's stages are, unit by unit.
template <int kRows, class W>
class Slots {
 public:
  __device__ explicit Slots(uint8_t* shared)
      : rows_(operand(shared_address(shared))),
        weights_(shared + T::kSlots * T::kRowBytes + threadIdx.x / 32 * W::kUnitBytes) {}
  /// Operand b of unit `slot`, counted around the ring.
  __device__ uint32_t rows(int slot) const { return rows_ + slot * (T::kRowBytes >> 4); }
  __device__ const uint8_t* weights(int slot) const { return weights_ + slot * T::kWeightBytes; }

 private:
  using T = Tile<kRows, W>;
  uint32_t rows_;
  const uint8_t* weights_;
};

/// Waits for all stages but the last `Pending` that were started, of all threads.
template <int Pending>
__device__ inline void wait_stages() {
  wait_copies<Pending>();
  fence_for_products();
  __syncthreads();
}

/// All of K, whose first stages were started.
template <int kRows, bool kWide, class W>
__device__ void multiply_tile(int units, const Slots<kRows, W>& slots, Copies<kRows, W>& copies,
                              float (&sums)[kRows / 2]) {
  constexpr int kAhead = Tile<kRows, W>::kAhead, kSlots = Tile<kRows, W>::kSlots;
  uint32_t a[2][4][4];
  wait_stages<kAhead - 1>();
  decode_unit<kWide, W>(slots.weights(0), a[0]);
  int slot = 0;
  for (int unit = 0; unit < units; unit += kStageUnits) {
    wait_stages<kAhead - 2>();  // the next stage's weights, too
    copies.start();
#pragma unroll
    for (int odd = 0; odd < kStageUnits; ++odd) {
      if (unit + odd >= units) break;
      const uint32_t b = slots.rows(slot);
      begin_products();
#pragma unroll
      for (int step = 0; step < 4; ++step) multiply_rs<kRows>(sums, a[odd][step], b + 2 * step);
      commit_products();
      slot = slot + 1 == kSlots ? 0 : slot + 1;
      wait_products<1>();  // a[1 - odd] is free
      // Behind the last unit it is of what was there before, for nobody.
      decode_unit<kWide, W>(slots.weights(slot), a[1 - odd]);
    }
  }
  wait_products<0>();
  wait_stages<0>();
}

template <int kRows, class W>
__global__ void __launch_bounds__(kThreads, 1)
    ring_rs_kernel(const __grid_constant__ RingArgs ring_args) {
  if constexpr (kHasWgmma) {
    extern __shared__ uint8_t raw[];
    uint8_t* const shared = align_shared(raw);
    const W4Args& args = ring_args.args;
    const W4Shape& shape = args.shape;
    const int block = static_cast<int>(blockIdx.y), first_row = block * kRows;
    if (first_row >= *args.padded_rows) return;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int expert = args.expert_ids[block], units = units_of(shape), panels = panels_of(shape);
    const int first_panel = static_cast<int>(blockIdx.x) * kTilePanels;
    // A warp beyond the last panel multiplies the last one once more, for nobody.
    const int panel = min(first_panel + warp, panels - 1);
    const uint8_t* const of_panel =
        ring_args.weights.units + (int64_t{expert} * panels + panel) * units * W::kUnitBytes;
    const int32_t* ids = args.sorted_token_ids + first_row;
    const int rows = __syncthreads_count(static_cast<int>(threadIdx.x) < kRows &&
                                         ids[threadIdx.x % kRows] < shape.rows());
    Copies<kRows, W> copies(args, ids, rows, of_panel, shared_address(shared));
    const Slots<kRows, W> slots(shared);
#pragma unroll
    for (int stage = 0; stage < Tile<kRows, W>::kAhead; ++stage) copies.start();
    float sums[kRows / 2] = {};
    if (is_wide<W>(ring_args.weights)) {
      multiply_tile<kRows, W::kMayBeWide, W>(units, slots, copies, sums);
    } else {
      multiply_tile<kRows, false, W>(units, slots, copies, sums);
    }
    const PanelOut<W> out(args, expert, first_panel, warp, out_pitch(shape, kTilePanels), shared);
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int token = j * 8 + lane % 4 * 2 + odd;
        if (token >= rows) continue;
        const float weight = shape.down ? args.routing_weights[ids[token]] : 1;
        out.put(token, sums[4 * j + odd], sums[4 * j + odd + 2], weight);
      }
    }
    __syncthreads();
    copy_out<kThreads>(args, ids, rows, first_panel, kTilePanels, shared);
  }
}

template <class P>
void launch(P& problem, const Launch& where) {
  const RingArgs ring_args{problem.args(W4Scaling::in_bf16), packed_weights(problem)};
  const W4Shape& shape = ring_args.args.shape;
  with_format(shape, [&]<class W>() {
    with_rows<8, 16, 32, 64, 128>(shape.block, [&]<int kRows>() {
      const auto kernel = ring_rs_kernel<kRows, W>;
      constexpr int kShared = Tile<kRows, W>::kSharedBytes;
      allow_shared(kernel, kShared);
      const dim3 grid(static_cast<unsigned>((panels_of(shape) + kTilePanels - 1) / kTilePanels),
                      static_cast<unsigned>((shape.capacity() + kRows - 1) / kRows));
      kernel<<<grid, kThreads, kShared, stream_of(where)>>>(ring_args);
    });
  });
  check_launch("ring_rs_kernel");
}

std::string unsupported(const W4Shape& shape, const DeviceFacts&) {
  for (const int rows : {8, 16, 32, 64, 128}) {
    if (shape.block == rows) return too_many_blocks(shape);
  }
  return fmt::format("takes blocks of 8, 16, 32, 64 and 128 rows, not of {}", shape.block);
}

constexpr const char* kName = "ring_rs";
constexpr const char* kHelp =
    "weights decoded into the registers of wgmma, a ring of stages of both operands";
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, unsupported>(kName, kHelp, launch));
const Kernel<W4Down> down(packed_spec<W4Down, unsupported>(kName, kHelp, launch));

}  // namespace
}  // namespace moegate::w4_moe
