// SPDX-License-Identifier: Apache-2.0
// The int4 products as one stream of weights into tensor cores. The weights are the 16-row operand
// of mma.m16n8k16 and up to 8 routed rows of one expert the 8-column one, so that a byte of weights
// is read and decoded once for all of them; fp32 accumulators. A block per tile of 16 columns, its
// warps a part of K each: a warp asks for all its weights at once, then works them off as they
// come, and the parts are summed through shared memory in a fixed order.
#include <algorithm>

#include "kernels/qmoe/stream_layout.cuh"
#include "kernels/qmoe/stream_mma.cuh"
#include "kernels/qmoe/stream_pack.h"
#include "kernels/topk_sort/cuda_check.cuh"

namespace moegate {
namespace qmoe {
namespace {

constexpr int kMaxRows = 64;        // R: two ballots of a warp
constexpr int kRowsPerSegment = 8;  // columns of the product's operand B
constexpr int kMostSteps = 9;       // of a part: so many loads a warp has in flight
constexpr int kMaxParts = 16;
constexpr int kWarpsPerProcessor = 24;  // that its registers let run at once

struct StreamArgs {
  QmoeArgs args;
  const uint8_t* packed;
  StreamLayout layout;
  int part_steps, longer;  // steps of a part; the first `longer` parts have one more
};

/// Up to 8 rows of one expert, by a row that may begin them: rows is 0 where it does not.
struct Segment {
  int expert, rows;
  int source;  // the lane's row of x: that of operand B's column l / 4; the last one beyond the
               // rows
};

__device__ Segment find_segment(const QmoeArgs& args, int row, int lane) {
  const int all = args.shape.rows(), high = min(lane + 32, all - 1);
  Segment segment{.expert = args.row_expert[row]};
  const int low_expert = args.row_expert[min(lane, all - 1)];
  const int low_source = args.row_source[min(lane, all - 1)];
  const int high_expert = args.row_expert[high], high_source = args.row_source[high];
  const uint64_t low = __ballot_sync(~0u, lane < all && low_expert == segment.expert);
  const uint64_t same =
      low | uint64_t{__ballot_sync(~0u, lane + 32 < all && high_expert == segment.expert)} << 32;
  const int first = __ffsll(static_cast<long long>(same)) - 1, end = first + __popcll(same);
  if ((row - first) % kRowsPerSegment != 0) return segment;
  segment.rows = min(end - row, kRowsPerSegment);
  const int mine = row + min(lane / 4, segment.rows - 1);
  const int from_low = __shfl_sync(~0u, low_source, mine % 32);
  const int from_high = __shfl_sync(~0u, high_source, mine % 32);
  segment.source = mine < 32 ? from_low : from_high;
  return segment;
}

/// Sums over a lane's columns 2 * (l / 4), the even one, and the next, of rows 2 * (l % 4) and the
/// next: even of both rows, then odd of both.
struct Sums {
  float c[4] = {};

  __device__ void add(const Sums& other) {
    for (int i = 0; i < 4; ++i) c[i] += other.c[i];
  }
  __device__ void add_scaled(const Sums& other, float2 scale) {
    c[0] += other.c[0] * scale.x;
    c[1] += other.c[1] * scale.x;
    c[2] += other.c[2] * scale.y;
    c[3] += other.c[3] * scale.y;
  }
};

/// What a lane reads of a part: codes, and scale factors where they come per block.
template <int Block>
struct Part {
  static constexpr int kPairs = Block == 0 ? 0 : Block == 32 ? 2 : 1;  // of scale factors, per step
  uint4 codes[kMostSteps];
  uint32_t scales[kMostSteps][kPairs ? kPairs : 1];

  __device__ void load(const uint8_t* from, int steps, int lane) {
    constexpr int kStepBytes = kCodeBytes + 32 * kPairs;
#pragma unroll
    for (int s = 0; s < kMostSteps; ++s) {
      if (s >= steps) break;
      codes[s] = load_once(from + s * kStepBytes + lane * 16);
      const auto* pairs =
          reinterpret_cast<const uint32_t*>(from + s * kStepBytes + kCodeBytes) + lane / 4 * kPairs;
      for (int i = 0; i < kPairs; ++i) scales[s][i] = __ldg(pairs + i);
    }
  }
};

/// Four accumulators, so that the products of a step do not wait for each other.
struct Chains {
  Sums s[4];

  /// One step; `x` is the lane's row from its 8 k on.
  template <class T>
  __device__ void multiply(uint4 codes, const uint16_t* x) {
    const uint4 low = __ldg(reinterpret_cast<const uint4*>(x));
    const uint4 high = __ldg(reinterpret_cast<const uint4*>(x + kStepK / 2));
    mma<T>(s[0].c, T::decode(codes.x), low.x, low.y);
    mma<T>(s[1].c, T::decode(codes.y), low.z, low.w);
    mma<T>(s[2].c, T::decode(codes.z), high.x, high.y);
    mma<T>(s[3].c, T::decode(codes.w), high.z, high.w);
  }
  __device__ Sums half(int h) const {
    Sums sum = s[2 * h];
    sum.add(s[2 * h + 1]);
    return sum;
  }
  __device__ Sums total() const {
    Sums sum = half(0);
    sum.add(half(1));
    return sum;
  }
};

/// Product of a part with the rows.
template <class T, int Block>
__device__ Sums multiply_part(const Part<Block>& part, const uint16_t* x, int steps) {
  Chains chains;
  Sums scaled;
#pragma unroll
  for (int s = 0; s < kMostSteps; ++s) {
    if (s >= steps) break;
    chains.multiply<T>(part.codes[s], x + s * kStepK);
    if constexpr (Block == 32) {
      scaled.add_scaled(chains.half(0), T::widen(part.scales[s][0]));
      scaled.add_scaled(chains.half(1), T::widen(part.scales[s][1]));
    } else if constexpr (Block != 0) {
      scaled.add_scaled(chains.total(), T::widen(part.scales[s][0]));
    }
    if constexpr (Block != 0) chains = Chains{};
  }
  return Block == 0 ? chains.total() : scaled;
}

__device__ float swiglu(const QmoeShape& shape, float gate, float up) {
  gate = fminf(gate, shape.limit);
  up = fminf(fmaxf(up, -shape.limit), shape.limit);
  return __fdividef(gate, 1 + __expf(-shape.alpha * gate)) * (up + shape.beta);
}

/// Scale, bias and activation; the columns' scale and bias are pairs.
template <class T, int Block, bool Swiglu>
__device__ void write_tile(const QmoeArgs& args, const Sums& sums, uint32_t scale_pair,
                           uint32_t bias_pair, int first_row, int rows, int tile, int lane) {
  const float2 bias = T::widen(bias_pair);
  const float2 scale = Block == 0 ? T::widen(scale_pair) : make_float2(1, 1);
  for (int i = 0; i < 2; ++i) {
    const int row = lane % 4 * 2 + i;
    if (row >= rows) return;
    const float even = sums.c[i] * scale.x + bias.x, odd = sums.c[2 + i] * scale.y + bias.y;
    const int64_t to = int64_t{first_row + row} * args.shape.outputs();
    if constexpr (Swiglu) {
      args.out[to + tile * (kTileColumns / 2) + lane / 4] =
          T::narrow(swiglu(args.shape, even, odd));
    } else {
      const uint32_t pair = T::narrow(even) | uint32_t{T::narrow(odd)} << 16;
      reinterpret_cast<uint32_t*>(args.out)[(to + tile * kTileColumns) / 2 + lane / 4] = pair;
    }
  }
}

template <class T, int Block, bool Swiglu>
__global__ void __launch_bounds__(kMaxParts * 32)
    stream_kernel(const __grid_constant__ StreamArgs a) {
  __shared__ float4 sent[kMaxParts - 1][32];  // sums of the warps but the first
  const StreamLayout& layout = a.layout;
  const int p = threadIdx.x / 32, lane = threadIdx.x % 32, parts = blockDim.x / 32;
  const int row = blockIdx.y, tile = blockIdx.x;
  const Segment segment = find_segment(a.args, row, lane);
  if (segment.rows == 0) return;

  const int step = p * a.part_steps + min(p, a.longer), steps = a.part_steps + (p < a.longer);
  const uint8_t* from =
      a.packed + (int64_t{segment.expert} * layout.tiles + tile) * layout.tile_bytes;
  Part<Block> part;
  part.load(from + kHeaderBytes + step * layout.step_bytes, steps, lane);
  const auto* columns = reinterpret_cast<const uint32_t*>(from) + lane / 4;
  const uint32_t scale = __ldg(columns), bias = __ldg(columns + kTileColumns / 2);
  const uint16_t* x =
      a.args.x + int64_t{segment.source} * a.args.shape.k + step * kStepK + lane % 4 * 8;
  Sums sums = multiply_part<T, Block>(part, x, steps);

  if (p > 0) sent[p - 1][lane] = make_float4(sums.c[0], sums.c[1], sums.c[2], sums.c[3]);
  __syncthreads();
  if (p > 0) return;
  for (int i = 0; i < parts - 1; ++i) {
    const float4 other = sent[i][lane];
    sums.add({{other.x, other.y, other.z, other.w}});
  }
  write_tile<T, Block, Swiglu>(a.args, sums, scale, bias, row, segment.rows, tile, lane);
}

/// Parts of a tile: as many as keep every SM's warps busy where the matrix is small, and no part
/// longer than a warp can have in flight.
int parts_of(const QmoeShape& shape, const StreamLayout& layout, const DeviceFacts& device) {
  const int warps = device.processors * kWarpsPerProcessor;
  const int steps = shape.rows() * layout.tiles * layout.steps / warps;  // of each of them
  const int part = std::clamp(steps, 2, kMostSteps);
  return std::min((layout.steps + part - 1) / part, kMaxParts);
}

template <class T, int Block, bool Swiglu>
void launch_kernel(const StreamArgs& args, int parts, const Launch& where) {
  const dim3 grid(static_cast<unsigned>(args.layout.tiles),
                  static_cast<unsigned>(args.args.shape.rows()));
  stream_kernel<T, Block, Swiglu>
      <<<grid, parts * 32, 0, static_cast<cudaStream_t>(where.stream)>>>(args);
  routing::check_launch("stream_kernel");
}

template <class T, bool Swiglu>
void launch_type(const StreamArgs& args, int parts, const Launch& where) {
  const QmoeShape& shape = args.args.shape;
  if (shape.block == shape.k) return launch_kernel<T, 0, Swiglu>(args, parts, where);
  if (shape.block == 32) return launch_kernel<T, 32, Swiglu>(args, parts, where);
  launch_kernel<T, 64, Swiglu>(args, parts, where);  // 128 too: its layout has every factor twice
}

template <class P>
void launch(P& problem, const Launch& where) {
  const QmoeShape& shape = problem.shape;
  const auto layout = StreamLayout::of(shape);
  const int parts = parts_of(shape, layout, where.device);
  const StreamArgs args{.args = problem.args(),
                        .packed = stream_packed(problem, static_cast<cudaStream_t>(where.stream)),
                        .layout = layout,
                        .part_steps = layout.steps / parts,
                        .longer = layout.steps % parts};
  constexpr bool kSwiglu = std::is_same_v<P, QmoeFc1>;
  if (shape.dtype == DType::f16) return launch_type<Half, kSwiglu>(args, parts, where);
  launch_type<Bfloat, kSwiglu>(args, parts, where);
}

std::string unsupported(const QmoeShape& s) {
  constexpr int kMaxK = kMaxParts * kMostSteps * kStepK;
  if (s.k % kStepK != 0) return fmt::format("K = {} is not a multiple of {}", s.k, kStepK);
  if (s.k > kMaxK) return fmt::format("K = {} exceeds {}", s.k, kMaxK);
  if (s.n % kTileColumns != 0) {
    return fmt::format("N = {} is not a multiple of {}", s.n, kTileColumns);
  }
  if (s.rows() > kMaxRows) {
    return fmt::format("{} routed rows; beyond {} a grouped GEMM is the better idea", s.rows(),
                       kMaxRows);
  }
  return {};
}

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "stream_mma",
      .backend = Backend::cuda,
      .help = "weights streamed into tensor cores, up to 8 rows of an expert at once",
      .launch = launch<P>,
      .prepare =
          [](P& problem, const Launch& where) {
            stream_packed(problem, static_cast<cudaStream_t>(where.stream));
          },
      .unsupported = [](const Case& c, const DeviceFacts&) { return unsupported(P::shape_of(c)); }};
}

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>());
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>());

}  // namespace
}  // namespace qmoe
}  // namespace moegate
