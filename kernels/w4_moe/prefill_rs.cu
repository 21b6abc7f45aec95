// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The MXFP4 products for many rows: wgmma with weights as operand a in registers, decoded while the
// product of the 64 of K before runs, and routed rows as operand b in shared memory, where four
// warpgroups of 64 rows of weights each read them. The form of triton_kernels on Hopper, with the
// tile four times as wide: what limits a narrower one is reading the rows of x, not the weights.
//
// Stages of x go around a ring of four. A stage is filled anew when all warpgroups have waited for
// the product before the last, which the barrier of the next unit says of all of them.
#include "kernels/cuda/with_rows.cuh"
#include "kernels/w4_moe/tile.cuh"
#include "kernels/w4_moe/wgmma_rs.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kThreads = 512, kStages = 4, kAheadStages = 2;
constexpr int kTilePanels = kThreads / 32;  // of weights: 256 rows

template <int kRows>
struct Tile {
  static constexpr int kStageBytes = kRows * kLineBytes;
  static constexpr int kOutBytes = kRows * (kTilePanels * kPanelRows + 8) * 2;
  static constexpr int kBytes =
      kStages * kStageBytes > kOutBytes ? kStages* kStageBytes : kOutBytes;
  static constexpr int kSharedBytes = kBytes + 1024;  // to begin where the swizzle does
};

struct PrefillArgs {
  W4Args args;
  PackedWeights weights;
};

template <bool kWide>
__device__ void decode_unit(const Unit& unit, uint32_t (&a)[4][4]) {
  const uint32_t words[] = {unit.codes.x, unit.codes.y, unit.codes.z, unit.codes.w};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t scales[2];
    scales_of<kWide>(unit.scales, half, scales);
    decode<kWide>(words[2 * half], scales, a[2 * half]);
    decode<kWide>(words[2 * half + 1], scales, a[2 * half + 1]);
  }
}

/// All of K. `panel`: the first unit of this warp's panel.
template <int kRows, bool kWide>
__device__ void multiply_tile(const W4Args& args, const RowCopies<kRows, kThreads>& copies,
                              const uint8_t* panel, uint32_t stages, float (&sums)[kRows / 2]) {
  const int units = units_of(args.shape);
  const auto load = [&](int unit) { return load_unit(panel + min(unit, units - 1) * kUnitBytes); };
  uint32_t a[2][4][4];
  decode_unit<kWide>(load(0), a[0]);
  Unit next = load(1);
  for (int unit = 0; unit < units; unit += 2) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int now = unit + odd;
      if (now >= units) break;
      asm volatile("cp.async.wait_group %0;" ::"n"(kAheadStages - 1) : "memory");
      fence_for_products();
      __syncthreads();
      const int ahead = now + kAheadStages;
      if (ahead < units) {
        copies.start(args, ahead, stages + ahead % kStages * Tile<kRows>::kStageBytes);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      const uint32_t b = operand(stages + now % kStages * Tile<kRows>::kStageBytes);
      begin_products();
#pragma unroll
      for (int step = 0; step < 4; ++step) multiply_rs<kRows>(sums, a[odd][step], b + 2 * step);
      commit_products();
      const Unit decoded = next;
      next = load(now + 2);
      wait_products<1>();  // a[1 - odd] is free
      decode_unit<kWide>(decoded, a[1 - odd]);
    }
  }
  wait_products<0>();
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

template <int kRows>
__global__ void __launch_bounds__(kThreads, 1)
    prefill_rs_kernel(const __grid_constant__ PrefillArgs prefill) {
  if constexpr (kHasWgmma) {
    extern __shared__ uint8_t raw[];
    uint8_t* const shared = align_shared(raw);
    const W4Args& args = prefill.args;
    const W4Shape& shape = args.shape;
    const int block = static_cast<int>(blockIdx.y), first_row = block * kRows;
    if (first_row >= *args.padded_rows) return;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int expert = args.expert_ids[block], units = units_of(shape), panels = panels_of(shape);
    const int first_panel = static_cast<int>(blockIdx.x) * kTilePanels;
    // A warp beyond the last panel multiplies the last one once more, for nobody.
    const int panel = min(first_panel + warp, panels - 1);
    const uint8_t* const of_panel =
        prefill.weights.units + (int64_t{expert} * panels + panel) * units * kUnitBytes;
    const int32_t* ids = args.sorted_token_ids + first_row;
    const int rows = __syncthreads_count(static_cast<int>(threadIdx.x) < kRows &&
                                         ids[threadIdx.x % kRows] < shape.rows());
    const RowCopies<kRows, kThreads> copies(shape, ids, rows);
    const uint32_t stages = shared_address(shared);
#pragma unroll
    for (int s = 0; s < kAheadStages; ++s) {
      if (s < units) copies.start(args, s, stages + s * Tile<kRows>::kStageBytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    float sums[kRows / 2] = {};
    if (*prefill.weights.is_wide != 0) {
      multiply_tile<kRows, true>(args, copies, of_panel, stages, sums);
    } else {
      multiply_tile<kRows, false>(args, copies, of_panel, stages, sums);
    }
    const PanelOut out(args, expert, first_panel, warp, out_pitch(shape, kTilePanels), shared);
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
  const PrefillArgs prefill{problem.args(), packed_weights(problem)};
  const W4Shape& shape = prefill.args.shape;
  with_rows<64, 128>(shape.block, [&]<int kRows>() {
    const auto kernel = prefill_rs_kernel<kRows>;
    allow_shared(kernel, Tile<kRows>::kSharedBytes);
    const dim3 grid(static_cast<unsigned>((panels_of(shape) + kTilePanels - 1) / kTilePanels),
                    static_cast<unsigned>((shape.capacity() + kRows - 1) / kRows));
    kernel<<<grid, kThreads, Tile<kRows>::kSharedBytes, stream_of(where)>>>(prefill);
  });
  check_launch("prefill_rs_kernel");
}

std::string unsupported(const W4Shape& shape) {
  if (shape.block == 64 || shape.block == 128) return {};
  return fmt::format("takes blocks of 64 and 128 rows, not of {}", shape.block);
}

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "prefill_rs",
      .backend = Backend::cuda,
      .help = "256 rows of weights decoded into the registers of wgmma, rows in shared memory",
      .launch = launch<P>,
      .prepare = [](P& problem, const Launch& where) { pack_weights(problem, where); },
      .unsupported = [](const Case& c, const DeviceFacts&) { return unsupported(P::shape_of(c)); }};
}
const Kernel<W4GateUp> gate_up(spec<W4GateUp>());
const Kernel<W4Down> down(spec<W4Down>());

}  // namespace
}  // namespace moegate::w4_moe
