// SPDX-License-Identifier: Apache-2.0
// chip: sm_80 (bf16 products with fp32 sums, asynchronous copies)
// The MXFP4 products at decode: weights go from memory straight into the registers that multiply
// them (packed.cuh), while the rows of x wait in shared memory, all of K. Weights are operand a, up
// to 32 routed rows operand b: a byte of weights is read and decoded once for a block.
//
// A block of 8 warps takes a run of panels of one expert. Its four teams of two warps take them in
// turn, and each warp of a team a half of K, whose weights it asks for kAhead units before it needs
// them, across panels. A team adds its two parts in the order of K, through shared memory: the cut
// depends on K alone, so that a row's bits do not depend on the batch.
#include <algorithm>

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/streaming.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

constexpr int kWarps = 8, kTeams = 4, kParts = kWarps / kTeams, kAhead = 4;
constexpr int kTeamThreads = kParts * 32;

struct StreamArgs {
  W4Args args;
  PackedWeights weights;
  int panels_per_block, unused;
};

/// Bytes from a row of x to the next: 16 more than whole lines, so that the rows of a matrix that
/// ldmatrix reads lie in different banks.
MOEGATE_HD int pitch(const W4Shape& shape) {
  return units_of(shape) * kUnitK * 2 + 16;
}
constexpr int sums_bytes(int tiles) {
  return 2 * kWarps * tiles * 32 * 16;  // two panels at a time
}
int shared_bytes(const W4Shape& shape) {
  return shape.block * pitch(shape) + sums_bytes(shape.block / 8);
}

__device__ Unit load_unit(const uint8_t* unit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Unit u;
  u.codes = load_streaming(unit + lane * 16);
  u.scales = __ldg(reinterpret_cast<const uint32_t*>(unit + kUnitCodes) + lane / 4);
  return u;
}

/// Rows of the block to shared memory, zeros behind K. Rows of padding are left as they are: their
/// products go nowhere.
__device__ void load_rows(const W4Args& args, const int32_t* ids, int rows, uint8_t* to) {
  const W4Shape& shape = args.shape;
  const int pieces = units_of(shape) * kUnitK / 8, there = shape.k / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += kWarps * 32) {
    const int row = i / pieces, piece = i % pieces;
    const uint16_t* from = args.x + int64_t{shape.source(ids[row])} * shape.k + piece * 8;
    uint8_t* piece_to = to + row * pitch(shape) + piece * 16;
    copy_async<16>(shared_address(piece_to), piece < there ? from : args.x, piece < there);
  }
}

/// `x`: where this lane's rows of matrices begin.
template <int kTiles, bool kWide>
__device__ void multiply_unit(const Unit& unit, uint32_t x, int row_bytes, int tiles,
                              float (&sums)[kTiles][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t scales[2], a[2][4];
    scales_of<kWide>(unit.scales, half, scales);
    decode<kWide>(half ? unit.codes.z : unit.codes.x, scales, a[0]);
    decode<kWide>(half ? unit.codes.w : unit.codes.y, scales, a[1]);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      if (j >= tiles) break;
      uint32_t b[4];
      load_matrices(x + j * 8 * row_bytes + half * 64, b);
      multiply(sums[j], a[0], b[0], b[1]);
      multiply(sums[j], a[1], b[2], b[3]);
    }
  }
}

/// What a block works on, the same in all of its threads.
struct Work {
  const int32_t* ids;    // of its rows, in shared memory
  const float* weights;  // of the routing, there, too
  int rows, expert;
};

/// The biases that a thread of a team adds at the end of a panel.
struct Biases {
  float low, high;
};

__device__ Biases load_biases(const W4Args& args, int expert, int panel) {
  const W4Shape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % 64 / 2;
  const auto bias = [&](int i) {
    const int row = weight_row(shape, panel, i);
    return row < shape.n ? bf16_to_float(__ldg(args.bias + int64_t{expert} * shape.n + row)) : 0.0f;
  };
  return {bias(lane / 4), bias(lane / 4 + 8)};
}

/// Adds the parts of a panel and writes its columns of the output.
template <int kTiles>
__device__ void write_panel(const W4Args& args, const Work& work, const Biases& biases, int panel,
                            const float4* parts) {
  const W4Shape& shape = args.shape;
  const int thread = static_cast<int>(threadIdx.x) % kTeamThreads;
  const int lane = thread % 64 / 2, odd = thread % 2;
  const int row = weight_row(shape, panel, lane / 4);
  const int row_8 = weight_row(shape, panel, lane / 4 + 8);
  for (int j = thread / 64; j < kTiles; j += kTeamThreads / 64) {
    const int token = j * 8 + lane % 4 * 2 + odd;
    if (token >= work.rows) continue;
    float low = 0, high = 0;  // rows g and g + 8
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const float4 sums = parts[(part * kTiles + j) * 32 + lane];
      low += odd ? sums.y : sums.x;
      high += odd ? sums.w : sums.z;
    }
    uint16_t* out = args.out + int64_t{work.ids[token]} * shape.outputs();
    low += biases.low;
    high += biases.high;
    if (!shape.down) {
      if (row < shape.n) out[row / 2] = float_to_bf16(swiglu(shape, low, high));
      continue;
    }
    if (row < shape.n) out[row] = float_to_bf16(work.weights[token] * low);
    if (row_8 < shape.n) out[row_8] = float_to_bf16(work.weights[token] * high);
  }
}

/// The units of a warp's panels, one after another, as bytes from the expert's first.
struct UnitStream {
  const uint8_t* expert;
  uint32_t at, end;   // of the next that was not asked for; of all
  uint32_t to_panel;  // from behind a panel's last unit to the next panel of the team
  int count, left;    // units of a panel, and of this one that were not asked for

  __device__ void ask(Unit& to) {
    if (at >= end) return;
    to = load_unit(expert + at);
    at += kUnitBytes;
    if (--left == 0) {
      left = count;
      at += to_panel;
    }
  }
};

/// Hands this warp's part of a panel over and writes the panel with the others of the team.
template <int kTiles>
__device__ void end_panel(const W4Args& args, const Work& work, const Biases& biases, int panel,
                          float4* parts, float (&sums)[kTiles][4]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    parts[(warp % kParts * kTiles + j) * 32 + lane] =
        make_float4(sums[j][0], sums[j][1], sums[j][2], sums[j][3]);
#pragma unroll
    for (float& sum : sums[j]) sum = 0;
  }
  asm volatile("bar.sync %0, %1;" ::"r"(warp / kParts + 1), "n"(kTeamThreads) : "memory");
  write_panel<kTiles>(args, work, biases, panel, parts);
}

/// The panels of a team, from `panel` on, of which `stream` has this warp's part of K.
template <int kTiles, bool kWide>
__device__ void multiply_panels(const W4Args& args, const Work& work, int panel, int end,
                                UnitStream& stream, Unit (&ahead)[kAhead], uint32_t x,
                                float4* parts) {
  constexpr int kParts4 = kParts * kTiles * 32;  // of a panel
  const int tiles = (work.rows + 7) / 8, row_bytes = pitch(args.shape), count = stream.count;
  float sums[kTiles][4] = {};
  int left = count, buffer = 0;  // two buffers: of the one before the team may still read
  uint32_t at = x;
  Biases biases = load_biases(args, work.expert, panel);
  while (panel < end) {
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (count > 0) {  // else this part of K has nothing
        const Unit now = ahead[a];
        stream.ask(ahead[a]);
        multiply_unit<kTiles, kWide>(now, at, row_bytes, tiles, sums);
        at += kUnitK * 2;
      }
      if (--left > 0) continue;
      end_panel<kTiles>(args, work, biases, panel, parts + buffer * kParts4, sums);
      left = count;
      at = x;
      buffer ^= 1;
      panel += kTeams;
      if (panel >= end) break;
      biases = load_biases(args, work.expert, panel);
    }
  }
}

template <int kTiles>
__global__ void __launch_bounds__(kWarps * 32)
    stream_mma_kernel(const __grid_constant__ StreamArgs stream) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ int32_t ids[kTiles * 8];
  __shared__ float routing[kTiles * 8];
  const W4Args& args = stream.args;
  const W4Shape& shape = args.shape;
  const int block = static_cast<int>(blockIdx.y), first_row = block * kTiles * 8;
  if (first_row >= *args.padded_rows) return;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int part = warp % kParts, units = units_of(shape), panels = panels_of(shape);
  const int panel = static_cast<int>(blockIdx.x) * stream.panels_per_block + warp / kParts;
  const int end = min(panels, static_cast<int>(blockIdx.x + 1) * stream.panels_per_block);
  const int first_unit = part * units / kParts, count = (part + 1) * units / kParts - first_unit;
  Work work{ids, routing, 0, args.expert_ids[block]};
  const uint32_t panel_bytes = static_cast<uint32_t>(units) * kUnitBytes;
  UnitStream weights{stream.weights.units + int64_t{work.expert} * panels * panel_bytes,
                     panel * panel_bytes + first_unit * kUnitBytes,
                     count > 0 ? end * panel_bytes : 0u,
                     kTeams * panel_bytes - count * kUnitBytes,
                     count,
                     count};
  Unit ahead[kAhead];
#pragma unroll
  for (Unit& unit : ahead) weights.ask(unit);
  bool there = false;
  if (thread < kTiles * 8) {
    const int32_t r = args.sorted_token_ids[first_row + thread];
    there = r < shape.rows();
    ids[thread] = r;
    if (shape.down && there) routing[thread] = args.routing_weights[r];
  }
  work.rows = __syncthreads_count(there);
  load_rows(args, ids, work.rows, shared);
  const bool is_wide = *stream.weights.is_wide != 0;
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const int row_bytes = pitch(shape);
  auto* const parts = reinterpret_cast<float4*>(shared + kTiles * 8 * row_bytes) +
                      warp / kParts * 2 * kParts * kTiles * 32;
  const uint32_t x =
      shared_address(shared) + lane % 8 * row_bytes + lane / 8 * 16 + first_unit * kUnitK * 2;
  if (is_wide) {
    multiply_panels<kTiles, true>(args, work, panel, end, weights, ahead, x, parts);
  } else {
    multiply_panels<kTiles, false>(args, work, panel, end, weights, ahead, x, parts);
  }
}

template <class P>
void launch(P& problem, const Launch& where) {
  const W4Args args = problem.args();
  const W4Shape& shape = args.shape;
  const auto blocks = static_cast<int>((shape.capacity() + shape.block - 1) / shape.block);
  // Many blocks per SM, so that the last ones are few, if all experts that may have rows do; but a
  // panel for each team.
  const int likely = std::min(blocks, std::min(shape.rows(), shape.experts));
  const int panels = panels_of(shape), wanted = 12 * where.device.processors;
  const int runs = std::clamp((wanted + likely - 1) / likely, 1, (panels + kTeams - 1) / kTeams);
  const int per_block = (panels + runs - 1) / runs;
  const StreamArgs stream{args, packed_weights(problem), per_block, 0};
  with_rows<8, 16, 32>(shape.block, [&]<int kRows>() {
    const auto kernel = stream_mma_kernel<kRows / 8>;
    const auto shared = static_cast<size_t>(shared_bytes(shape));
    allow_shared(kernel, shared);
    const dim3 grid(static_cast<unsigned>((panels + per_block - 1) / per_block),
                    static_cast<unsigned>(blocks));
    kernel<<<grid, kWarps * 32, shared, stream_of(where)>>>(stream);
  });
  check_launch("stream_mma_kernel");
}

std::string unsupported(const W4Shape& shape, const DeviceFacts& device) {
  if (shape.block != 8 && shape.block != 16 && shape.block != 32) {
    return fmt::format("takes blocks of 8, 16 and 32 rows, not of {}", shape.block);
  }
  if (shared_bytes(shape) <= device.shared_per_block) return {};
  return fmt::format("{} rows of K = {} do not fit in shared memory", shape.block, shape.k);
}

template <class P>
KernelSpec<P> spec() {
  return {.name = "stream_mma",
          .backend = Backend::cuda,
          .help = "weights from memory into registers, rows in shared memory, mma.sync",
          .launch = launch<P>,
          .prepare = [](P& problem, const Launch& where) { pack_weights(problem, where); },
          .unsupported = [](const Case& c,
                            const DeviceFacts& d) { return unsupported(P::shape_of(c), d); }};
}
const Kernel<W4GateUp> gate_up(spec<W4GateUp>());
const Kernel<W4Down> down(spec<W4Down>());

}  // namespace
}  // namespace moegate::w4_moe
