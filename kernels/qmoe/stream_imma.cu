// SPDX-License-Identifier: Apache-2.0
// The int4 products as one stream of weights into int8 tensor cores. A lane turns 8 codes into
// operands with one shift and two masks (into fp16 it takes ten instructions), because activations
// become int8 too: two digits each, x = scale * (256 * high + low), scale = the largest |x| of a
// row's part of K over 32512. The digits are two of the eight columns of mma.m16n8k32, so four
// routed rows of an expert cost no more than one, and a byte of weights is read and decoded once
// for them. Sums are exact in int32; rounding x to 16 bits of its part's largest costs less than
// sqrt(K) * 9e-6 of the output.
//
// One block per SM takes an equal share of all tiles of 16 columns; a team of its warps takes a
// tile, each warp a part of K, and a warp asks for its part of the next tile while it works on this
// one: some 90 KB per SM are always on their way. The parts of a tile are summed through shared
// memory in a fixed order.
#include <algorithm>

#include "kernels/cuda_check.cuh"
#include "kernels/qmoe/stream_imma.cuh"
#include "kernels/qmoe/stream_layout.cuh"
#include "kernels/qmoe/stream_pack.h"

namespace moegate {
namespace qmoe {
namespace {

constexpr int kMaxRows = 64;        // R: two ballots of a warp
constexpr int kRowsPerSegment = 4;  // two columns of the product's operand B each
constexpr int kMostSteps = 9;       // of a part: so many loads a warp has in flight
constexpr int kMaxWarps = 20;       // leaves 96 registers for each thread

struct StreamArgs {
  QmoeArgs args;
  const uint8_t* packed;
  StreamLayout layout;
  int parts, teams;        // parts of a tile along K, a warp each; teams of so many warps
  int part_steps, longer;  // steps of a part; the first `longer` parts have one more
  int scales, sent;        // where these begin in shared memory
  float share;             // 1 / number of blocks
};

/// The routed rows cut into segments of up to 4 rows of one expert, in shared memory.
struct Segments {
  int count;
  int first[kMaxRows + 1];  // row at which each begins; [count]: R
  int expert[kMaxRows];     // by row
  int source[kMaxRows];     // by row
};

/// One warp does it; `row`, `expert` and `source` are the lane's. Rows from 32 on are added to what
/// is there already: `run` is where the run of rows of one expert began that the first of them may
/// belong to, `last` that expert. Returns both for the next 32.
struct Run {
  int last = -1, start = 0;
};
__device__ Run add_rows(Segments& segments, int row, int rows, int expert, int source, Run run,
                        int lane) {
  const int before = __shfl_up_sync(~0u, expert, 1);
  const uint32_t changes = __ballot_sync(~0u, expert != (lane > 0 ? before : run.last));
  const uint32_t mine = changes & (~0u >> (31 - lane));
  const int start = mine ? row - lane + 31 - __clz(mine) : run.start;
  const bool begins = row < rows && (row - start) % kRowsPerSegment == 0;
  const uint32_t starts = __ballot_sync(~0u, begins);
  const int count = segments.count;
  segments.expert[row] = expert;
  segments.source[row] = source;
  if (begins) segments.first[count + __popc(starts & ((1u << lane) - 1))] = row;
  __syncwarp();
  if (lane == 0) {
    segments.count = count + __popc(starts);
    segments.first[segments.count] = rows;
  }
  __syncwarp();
  return {__shfl_sync(~0u, expert, 31), __shfl_sync(~0u, start, 31)};
}

__device__ void find_segments(const QmoeArgs& args, Segments& segments, int lane) {
  const int rows = args.shape.rows();
  const int low = min(lane, rows - 1), high = min(lane + 32, rows - 1);
  const int expert = args.row_expert[low], source = args.row_source[low];
  const int high_expert = args.row_expert[high], high_source = args.row_source[high];
  if (lane == 0) segments.count = 0;
  __syncwarp();
  const Run run = add_rows(segments, lane, rows, expert, source, {}, lane);
  if (rows > 32) add_rows(segments, lane + 32, rows, high_expert, high_source, run, lane);
}

/// A place in the list of all tiles of all segments, in that order.
struct Cursor {
  int segment, tile;

  __device__ void advance(int by, int tiles) {
    tile += by;
    for (; tile >= tiles; ++segment) tile -= tiles;
  }
};

/// Sums of one routed row over a lane's columns 2 * (l / 4) and the next, those of row l % 4.
struct Sums {
  float even = 0, odd = 0;

  __device__ void add(float2 other) {
    even += other.x;
    odd += other.y;
  }
};

/// What a lane reads of a part: codes, and scale factors where they come per block.
template <int Block>
struct Part {
  static constexpr int kPairs = Block == 0 ? 0 : Block == 32 ? 2 : 1;  // of scale factors, per step
  static constexpr int kStepBytes = kCodeBytes + 32 * kPairs;
  uint4 codes[kMostSteps];
  uint32_t scales[kMostSteps][kPairs ? kPairs : 1];
  uint32_t scale, bias;  // of the tile's columns, per channel

  /// `tile` is its start. Scale and bias come with the first step, so that nobody waits for them
  /// later: waiting for one load may mean waiting for all.
  __device__ void load_step(const uint8_t* tile, int first_step, int s, int lane) {
    const uint8_t* from = tile + kHeaderBytes + (first_step + s) * kStepBytes;
    codes[s] = load_once(from + lane * 16);
    const auto* pairs = reinterpret_cast<const uint32_t*>(from + kCodeBytes) + lane / 4 * kPairs;
    for (int i = 0; i < kPairs; ++i) scales[s][i] = __ldg(pairs + i);
    if (s > 0) return;
    const auto* columns = reinterpret_cast<const uint32_t*>(tile) + lane / 4;
    scale = __ldg(columns);
    bias = __ldg(columns + kTileColumns / 2);
  }
};

/// Digits of all rows of x in shared memory, [row][digit][K] bytes in the order of operand B: of
/// each step of 64 k, a lane's 16 bytes are its 8 k of the first half and its 8 k of the second.
struct Digits {
  uint8_t* bytes;
  float* scales;  // [row][parts], of 16 * x
  int k, parts;

  __device__ uint8_t* plane(int row, int digit) const {
    return bytes + (row * 2 + digit) * plane_bytes(k);
  }
  /// An odd number of half bank rows: lanes that load from two planes meet no bank twice.
  static __host__ __device__ int plane_bytes(int k) { return k | kStepK; }
  __device__ float& scale(int row, int part) const { return scales[row * parts + part]; }
};

/// Eight values of x as their digits, high and low.
template <class T>
__device__ void to_digits(uint4 x, float inverse, uint2& high, uint2& low) {
  constexpr float kMagic = 12582912;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
  uint32_t whole[4];  // two 16-bit integers each
  for (int i = 0; i < 4; ++i) {
    const float2 v = T::widen(pairs[i]);
    whole[i] = __byte_perm(__float_as_uint(fmaf(v.x, inverse, kMagic)),
                           __float_as_uint(fmaf(v.y, inverse, kMagic)), 0x5410);
  }
  low =
      make_uint2(__byte_perm(whole[0], whole[1], 0x6420), __byte_perm(whole[2], whole[3], 0x6420));
  for (uint32_t& w : whole) w = __vadd2(w, 0x00800080);  // the low digit is signed
  high =
      make_uint2(__byte_perm(whole[0], whole[1], 0x7531), __byte_perm(whole[2], whole[3], 0x7531));
}

__device__ float largest(float a, float2 b) {
  return fmaxf(a, fmaxf(fabsf(b.x), fabsf(b.y)));
}

/// One row's part of K, by one warp.
template <class T>
struct RowPart {
  static constexpr int kChunks = (kMostSteps * 8 + 31) / 32;  // of 8 values, per lane
  uint4 chunks[kChunks];

  /// `x`: the row's part.
  __device__ void load(const uint16_t* x, int steps, int lane) {
    for (int i = 0; i < kChunks; ++i) {
      const int chunk = i * 32 + lane;
      chunks[i] = chunk < steps * 8 ? __ldg(reinterpret_cast<const uint4*>(x) + chunk)
                                    : make_uint4(0, 0, 0, 0);
    }
  }
  /// Writes its digits and its scale.
  __device__ void split(const Digits& digits, int row, int part, int step, int steps,
                        int lane) const {
    float most = 0;
    for (const uint4& c : chunks)
      for (const uint32_t pair : {c.x, c.y, c.z, c.w}) most = largest(most, T::widen(pair));
    most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));  // not negative
    constexpr float kMost = 32512;  // 127 * 256: the largest that two digits hold on both sides
    const float inverse = most > 0 ? kMost / most : 0;
    if (lane == 0) digits.scale(row, part) = most / (16 * kMost);
    for (int i = 0; i < kChunks; ++i) {
      const int chunk = i * 32 + lane;
      if (chunk >= steps * 8) break;
      uint2 high, low;
      to_digits<T>(chunks[i], inverse, high, low);
      // Step, then the lane of operand B that wants it, then the half of the step.
      const int to = (step + chunk / 8) * kStepK + chunk % 4 * 16 + chunk / 4 % 2 * 8;
      *reinterpret_cast<uint2*>(digits.plane(row, 0) + to) = high;
      *reinterpret_cast<uint2*>(digits.plane(row, 1) + to) = low;
    }
  }
};

/// Both digits' sums of a stretch as one number. Sums of a block of scale factors come on top of
/// kIntegerMagic, which makes them floats without a conversion: they stay below 2^22.
constexpr int kIntegerMagic = 0x4b400000;
__device__ float joined(int high, int low) {
  constexpr float kMagic = 12582912;
  return fmaf(__int_as_float(high) - kMagic, 256, __int_as_float(low) - kMagic);
}

/// Product of a part with the rows; every register of the part is loaded again from `next` as soon
/// as it was used. `x`: the lane's digits.
template <class T, int Block>
__device__ Sums multiply_part(Part<Block>& part, const uint8_t* x, int steps, const uint8_t* next,
                              int first_step, int lane) {
  Sums sums;
  Accumulator chains[2] = {};
  constexpr Accumulator kFrom = {{kIntegerMagic, kIntegerMagic, kIntegerMagic, kIntegerMagic}};
  const auto add_scaled = [&](const Accumulator& a, uint32_t pair) {
    const float2 scale = T::widen(pair);
    sums.even += joined(a.c[0], a.c[1]) * scale.x;
    sums.odd += joined(a.c[2], a.c[3]) * scale.y;
  };
#pragma unroll
  for (int s = 0; s < kMostSteps; ++s) {
    if (s >= steps) break;
    const uint4 codes = part.codes[s];
    const uint4 b = *reinterpret_cast<const uint4*>(x + s * kStepK);
    if constexpr (Block == 0) {
      chains[0] = multiply(codes.x, codes.y, b.x, b.y, chains[0]);
      chains[1] = multiply(codes.z, codes.w, b.z, b.w, chains[1]);
    } else {
      chains[0] = multiply(codes.x, codes.y, b.x, b.y, kFrom);
      chains[1] = multiply(codes.z, codes.w, b.z, b.w, Block == 32 ? kFrom : chains[0]);
      if (Block == 32) add_scaled(chains[0], part.scales[s][0]);
      add_scaled(chains[1], part.scales[s][Block == 32]);
    }
    if (next) part.load_step(next, first_step, s, lane);
  }
  if constexpr (Block == 0) {
    const auto total = [&](int i) { return static_cast<float>(chains[0].c[i] + chains[1].c[i]); };
    sums.even = fmaf(total(0), 256, total(1));
    sums.odd = fmaf(total(2), 256, total(3));
  }
  return sums;
}

__device__ float swiglu(const QmoeShape& shape, float gate, float up) {
  gate = fminf(gate, shape.limit);
  up = fminf(fmaxf(up, -shape.limit), shape.limit);
  return __fdividef(gate, 1 + __expf(-shape.alpha * gate)) * (up + shape.beta);
}

/// Scale, bias and activation; the columns' scale and bias are pairs.
template <class T, int Block, bool Swiglu>
__device__ void write_tile(const QmoeArgs& args, const Sums& sums, uint32_t scale_pair,
                           uint32_t bias_pair, int row, int tile, int lane) {
  const float2 bias = T::widen(bias_pair);
  const float2 scale = Block == 0 ? T::widen(scale_pair) : make_float2(1, 1);
  const float even = sums.even * scale.x + bias.x, odd = sums.odd * scale.y + bias.y;
  const int64_t to = int64_t{row} * args.shape.outputs();
  if constexpr (Swiglu) {
    args.out[to + tile * (kTileColumns / 2) + lane / 4] = T::narrow(swiglu(args.shape, even, odd));
  } else {
    const uint32_t pair = T::narrow(even) | uint32_t{T::narrow(odd)} << 16;
    reinterpret_cast<uint32_t*>(args.out)[(to + tile * kTileColumns) / 2 + lane / 4] = pair;
  }
}

/// Where the first warp of a team finds the sums of the others: two inboxes in turn, so that they
/// need not wait for it.
struct Inbox {
  uint64_t full[2], empty[2];
};

struct TeamSums {
  Inbox& inbox;
  float2* sent;  // [2][others][32]
  int others;    // warps beside the first
  int turn = 0;  // tiles so far

  __device__ void send(const Sums& sums, int sender, int lane) {
    const int box = turn % 2;
    if (turn > 1) wait_barrier(&inbox.empty[box], (turn / 2 - 1) % 2);
    sent[(box * others + sender) * 32 + lane] = make_float2(sums.even, sums.odd);
    __syncwarp();
    if (lane == 0) arrive_barrier(&inbox.full[box]);
    ++turn;
  }
  /// In the order of the warps: the result does not depend on who came first.
  __device__ void receive(Sums& sums, int lane) {
    const int box = turn % 2;
    wait_barrier(&inbox.full[box], turn / 2 % 2);
    for (int i = 0; i < others; ++i) sums.add(sent[(box * others + i) * 32 + lane]);
    __syncwarp();
    if (lane == 0) arrive_barrier(&inbox.empty[box]);
    ++turn;
  }
};

template <class T, int Block, bool Swiglu>
__global__ void __launch_bounds__(kMaxWarps * 32, 1)
    stream_kernel(const __grid_constant__ StreamArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Inbox inboxes[kMaxWarps];
  __shared__ Segments segments;
  __shared__ uint64_t x_ready;
  const StreamLayout& layout = a.layout;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int team = warp / a.parts, p = warp - team * a.parts;
  const int step = p * a.part_steps + min(p, a.longer), steps = a.part_steps + (p < a.longer);
  const QmoeShape& shape = a.args.shape;
  const uint16_t* x = a.args.x + step * kStepK;
  RowPart<T> row_part;
  if (team < shape.source_rows()) row_part.load(x + int64_t{team} * shape.k, steps, lane);
  if (warp == a.parts * a.teams - 1) find_segments(a.args, segments, lane);
  if (threadIdx.x == 0) init_barrier(&x_ready, a.parts * min(a.teams, shape.source_rows()));
  if (p == 0 && lane < 2) {
    init_barrier(&inboxes[team].full[lane], a.parts - 1);
    init_barrier(&inboxes[team].empty[lane], 1);
  }
  __syncthreads();

  // A warp is done with x before it asks for weights, behind which x would wait for microseconds.
  const Digits digits{shared, reinterpret_cast<float*>(shared + a.scales), shape.k, a.parts};
  for (int row = team; row < shape.source_rows(); row += a.teams) {
    if (row > team) row_part.load(x + int64_t{row} * shape.k, steps, lane);
    row_part.split(digits, row, p, step, steps, lane);
  }
  if (team < shape.source_rows()) {
    __syncwarp();
    if (lane == 0) arrive_barrier(&x_ready);
  }

  const int tiles = layout.tiles, all = segments.count * tiles;
  const auto share = [&](unsigned block) {  // where a block's tiles begin
    const float before = static_cast<float>(all) * (static_cast<float>(block) * a.share);
    return block == gridDim.x ? all : static_cast<int>(before);
  };
  const int begin = share(blockIdx.x), end = share(blockIdx.x + 1);
  const auto place = [&](const Cursor& at) {  // of a tile
    const int index = segments.expert[segments.first[at.segment]] * tiles + at.tile;
    return a.packed + int64_t{index} * layout.tile_bytes;
  };
  Cursor at{0, begin + team};
  at.advance(0, tiles);
  int unit = begin + team;
  if (unit >= end) return;
  Part<Block> part;
  const uint8_t* tile = place(at);
#pragma unroll
  for (int s = 0; s < kMostSteps; ++s)
    if (s < steps) part.load_step(tile, step, s, lane);
  wait_barrier(&x_ready, 0);

  TeamSums team_sums{inboxes[team],
                     reinterpret_cast<float2*>(shared + a.sent) + team * 2 * (a.parts - 1) * 32,
                     a.parts - 1};
#pragma unroll 1
  while (unit < end) {
    unit += a.teams;
    Cursor following = at;
    following.advance(a.teams, tiles);
    const uint8_t* next = unit < end ? place(following) : nullptr;
    const int begins = segments.first[at.segment], rows = segments.first[at.segment + 1] - begins;
    // Lanes beyond the rows repeat the last: their sums are not written. In operand B lanes 4 * n
    // and following have column n, a digit of row n / 2; in the sums a lane has row l % 4.
    const auto source = [&](int row) { return segments.source[begins + min(row, rows - 1)]; };
    const uint8_t* mine =
        digits.plane(source(lane / 8), lane / 4 % 2) + step * kStepK + lane % 4 * 16;
    const float unit_of_x = digits.scale(source(lane % 4), p);
    const uint32_t scale = part.scale, bias = part.bias;
    Sums sums = multiply_part<T, Block>(part, mine, steps, next, step, lane);
    sums.even *= unit_of_x;
    sums.odd *= unit_of_x;
    if (p > 0) {
      team_sums.send(sums, p - 1, lane);
    } else {
      if (a.parts > 1) team_sums.receive(sums, lane);
      if (lane % 4 < rows)
        write_tile<T, Block, Swiglu>(a.args, sums, scale, bias, begins + lane % 4, at.tile, lane);
    }
    at = following;
  }
}

/// How a shape is divided among warps and what shared memory that takes.
struct Plan {
  StreamArgs args;
  int shared;
};

Plan plan(const QmoeShape& shape, const DeviceFacts& device) {
  Plan plan{};
  StreamArgs& a = plan.args;
  a.layout = StreamLayout::of(shape);
  const int share = (shape.rows() * a.layout.tiles + device.processors - 1) / device.processors;
  a.parts = (a.layout.steps + kMostSteps - 1) / kMostSteps;
  // Shorter parts where that gives every tile of a block a team of its own.
  while (kMaxWarps / (a.parts + 1) >= share && a.layout.steps / (a.parts + 1) >= 2) ++a.parts;
  a.teams = std::max(kMaxWarps / a.parts, 1);
  a.part_steps = a.layout.steps / a.parts;
  a.longer = a.layout.steps % a.parts;
  a.share = 1 / static_cast<float>(device.processors);
  a.scales = shape.source_rows() * 2 * Digits::plane_bytes(shape.k);
  a.sent = a.scales + (shape.source_rows() * a.parts * 4 + 15) / 16 * 16;
  plan.shared = a.sent + 2 * a.teams * (a.parts - 1) * 32 * static_cast<int>(sizeof(float2));
  return plan;
}

template <class T, int Block, bool Swiglu>
void launch_kernel(const Plan& plan, const Launch& where) {
  const auto kernel = stream_kernel<T, Block, Swiglu>;
  const auto shared = static_cast<size_t>(plan.shared);
  allow_shared(kernel, shared);
  kernel<<<where.device.processors, plan.args.parts * plan.args.teams * 32, shared,
           static_cast<cudaStream_t>(where.stream)>>>(plan.args);
  check_launch("stream_kernel");
}

template <class T, bool Swiglu>
void launch_type(const Plan& plan, const Launch& where) {
  const QmoeShape& shape = plan.args.args.shape;
  if (shape.block == shape.k) return launch_kernel<T, 0, Swiglu>(plan, where);
  if (shape.block == 32) return launch_kernel<T, 32, Swiglu>(plan, where);
  launch_kernel<T, 64, Swiglu>(plan, where);  // 128 too: its layout has every factor twice
}

template <class P>
void launch(P& problem, const Launch& where) {
  Plan planned = plan(problem.shape, where.device);
  planned.args.args = problem.args();
  planned.args.packed = stream_packed(problem, static_cast<cudaStream_t>(where.stream));
  constexpr bool kSwiglu = std::is_same_v<P, QmoeFc1>;
  if (problem.shape.dtype == DType::f16) return launch_type<Half, kSwiglu>(planned, where);
  launch_type<Bfloat, kSwiglu>(planned, where);
}

std::string unsupported(const QmoeShape& s, const DeviceFacts& device) {
  if (s.k % kStepK != 0) return fmt::format("K = {} is not a multiple of {}", s.k, kStepK);
  if (s.n % kTileColumns != 0) {
    return fmt::format("N = {} is not a multiple of {}", s.n, kTileColumns);
  }
  if (s.rows() > kMaxRows) {
    return fmt::format("{} routed rows; beyond {} a grouped GEMM is the better idea", s.rows(),
                       kMaxRows);
  }
  const Plan planned = plan(s, device);
  constexpr int kStatic = 4096;  // more than the kernel's own
  if (planned.args.parts > kMaxWarps || planned.shared + kStatic > device.shared_per_block) {
    return fmt::format("{} rows of K = {} need {} warps and {} bytes of shared memory",
                       s.source_rows(), s.k, planned.args.parts, planned.shared);
  }
  return {};
}

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "stream_imma",
      .backend = Backend::cuda,
      .help =
          "weights streamed into int8 tensor cores, x as two digits; 4 rows of an expert at once",
      .launch = launch<P>,
      .prepare =
          [](P& problem, const Launch& where) {
            stream_packed(problem, static_cast<cudaStream_t>(where.stream));
          },
      .unsupported = [](const Case& c,
                        const DeviceFacts& device) { return unsupported(P::shape_of(c), device); }};
}

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>());
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>());

}  // namespace
}  // namespace qmoe
}  // namespace moegate
