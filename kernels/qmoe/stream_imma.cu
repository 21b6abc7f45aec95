// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (TMA)
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
//
// Measured on an H200 (read ceiling 4.48 TB/s), gpt-oss-20b fc1, cold: T = 1 10.7 us (33.3 MB,
// floor 7.4), 2 17.5, 4 28.7, 8 44.6 (92 % of the ceiling).
//
// From single runs and the profiler's warp samples during development: a kernel that only reads the
// 33 MB takes 9.6 us. Until the first weights are asked for about 1.9 us pass: launch and constants
// 0.6, then routing and x, which both come from memory, 1.0, and finding the tiles 0.3, which one
// token does not wait for (10.9 us when it did; 11.9 where the routing was read behind weights). A
// warp has six scoreboards for its loads: x loaded after weights, or scale and bias apart from
// them, waited for all of these (2 us). Before int8, decoding to fp16 took 50 instructions per step
// of 64 k in place of 17 and limited the kernel (13.6 us); weights copied through shared memory
// took 14 to 16.
//
// fc2 with narrow K at T = 1 beside single_fp16_acc, us, scale factors per channel, per 64 and per
// 32, on H200s of 2026-11-23: Gemma (K = 704) 4.98, 5.31, 5.57, the other 5.55, 5.58, 5.70; Qwen
// (512) 4.16, 4.32, 4.64, the other 3.95, 4.09, 4.24. Such a launch is two waits for memory: x and
// experts, then weights. Between them x is split, which the other does not do; weights asked for
// before that took 4.8 us, parts of a tile 4.4. With 20 warps, not 24, Gemma's fullest SM had 11
// tiles for 10 teams: 6.0 us. An infinite or NaN activation does not reach the output as such.
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/qmoe/stream_digits.cuh"
#include "kernels/qmoe/stream_layout.h"
#include "kernels/qmoe/stream_pack.h"
#include "kernels/qmoe/stream_part.cuh"
#include "kernels/qmoe/stream_plan.h"
#include "kernels/qmoe/stream_routing.cuh"
#include "kernels/qmoe/stream_step.h"
#include "kernels/qmoe/stream_sums.cuh"

namespace moegate::qmoe {
namespace {

using namespace cuda;

struct StreamArgs {
  QmoeArgs args;
  const uint8_t* packed;
  StreamLayout layout;
  int parts, teams;        // as in StreamPlan
  int part_steps, longer;  // steps of a part; the first `longer` parts have one more
  int scales, sent;        // where these begin in shared memory
  float share;             // 1 / number of blocks
};

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

/// Which tiles of all a block works on.
struct Share {
  int begin, end;
};
__device__ Share share_of(int all, float share) {
  const auto before = [&](unsigned block) {
    return static_cast<int>(static_cast<float>(all) * (static_cast<float>(block) * share));
  };
  return {before(blockIdx.x), blockIdx.x + 1 == gridDim.x ? all : before(blockIdx.x + 1)};
}

/// A configuration whose launch depends on the one before.
template <class C>
struct Dependent : C {
  static constexpr bool kDependent = true;
};

/// fc1's x is the layer's own: its digits do not wait for who computes which row.
template <bool Swiglu, class C>
constexpr bool kSplitsAhead = (C::kDependent) && Swiglu;
/// fc2 of one token has L2 fetch its first weights while it splits x, where the other forms would
/// first have to find their segments.
template <bool Swiglu, class C>
constexpr bool kFetchesAhead = !Swiglu && C::kDependent && C::kOneToken;

/// A warp's part of its team's first tile, for fetching it ahead.
struct FirstPart {
  int tile;         // of its expert
  unsigned expert;  // nothing but speed hangs on it

  /// Before fc1 has ended. Who computes which row was known before it began, so row_expert is
  /// written; it is read from L2, because an L1 may hold what was there once.
  __device__ FirstPart(const StreamArgs& a, int team) {
    const Share mine = share_of(a.args.shape.rows() * a.layout.tiles, a.share);
    const int unit = min(mine.begin + team, a.args.shape.rows() * a.layout.tiles - 1);
    tile = unit % a.layout.tiles;
    expert = load_from_l2(a.args.row_expert + unit / a.layout.tiles);
  }
  __device__ void fetch(const StreamArgs& a, int p, int step, int steps) const {
    const int64_t known = min(expert, a.args.shape.experts - 1u);
    const int from = p == 0 ? 0 : kHeaderBytes + step * a.layout.step_bytes;
    const int to = kHeaderBytes + (step + steps) * a.layout.step_bytes;
    prefetch_to_l2(a.packed + (known * a.layout.tiles + tile) * a.layout.tile_bytes + from,
                   to - from);
  }
};

// Its stages share what they hold: NOLINTNEXTLINE(readability-function-size)
template <class T, int Block, bool Swiglu, class C>
__global__ void __launch_bounds__(C::kWarps * 32, 1)
    stream_kernel(const __grid_constant__ StreamArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Inbox inboxes[C::kWarps];
  __shared__ Segments segments;
  __shared__ uint64_t x_ready;
  const StreamLayout& layout = a.layout;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int team = warp / a.parts, p = warp - team * a.parts;
  const int step = p * a.part_steps + min(p, a.longer), steps = a.part_steps + (p < a.longer);
  const QmoeShape& shape = a.args.shape;
  const Digits digits{shared, reinterpret_cast<float*>(shared + a.scales), shape.k, a.parts};
  const uint16_t* x = a.args.x + step * kStepK;
  RowPart<T, C::kSteps> row_part;
  const auto load_first_row = [&] {
    if (team < shape.source_rows()) row_part.load(x + int64_t{team} * shape.k, steps, lane);
  };
  const auto split_rows = [&] {
    for (int row = team; row < shape.source_rows(); row += a.teams) {
      if (row > team) row_part.load(x + int64_t{row} * shape.k, steps, lane);
      row_part.split(digits, row, p, step, steps, lane);
    }
  };
  if constexpr (kSplitsAhead<Swiglu, C>) {
    load_first_row();
    split_rows();
  }
  if constexpr (kFetchesAhead<Swiglu, C>) {
    const FirstPart first(a, team);
    wait_for_dependency();
    allow_dependents();
    load_first_row();
    if (elected()) first.fetch(a, p, step, steps);
  } else {
    if constexpr (C::kDependent) {
      wait_for_dependency();
      allow_dependents();
    }
    if constexpr (!kSplitsAhead<Swiglu, C>) load_first_row();
  }

  const int tiles = layout.tiles;
  Share mine;
  Cursor at;
  const auto find_tiles = [&](int count) {
    mine = share_of(count * tiles, a.share);
    at = {0, mine.begin + team};
    at.advance(0, tiles);
  };
  // Are weights asked for before segments are found? Not those of many tokens. Per channel the
  // compiler knows it: 1 to 4 % at 8 tokens. In blocks of scale factors the question stays, though
  // the answer is no: without it ptxas spills more, 2 to 7 % in blocks of 32.
  const bool early =
      C::kOneToken || (Block > 0 && shape.tokens == 1 && shape.source_rows() <= a.teams);
  int expert = 0;
  if (early) {
    find_tiles(shape.rows());
    expert = __ldg(a.args.row_expert + min(at.segment, shape.rows() - 1));
  }
  if (warp == a.parts * a.teams - 1) find_segments<C::kOneToken>(a.args, segments, lane);
  if (threadIdx.x / 32 == 0 && elected())
    init_barrier(&x_ready, 32 * a.parts * min(a.teams, shape.source_rows()));
  if (p == 0 && elected()) inboxes[team].init(a.parts - 1);
  if (!early) __syncthreads();
  // A warp is done with x before it asks for weights, behind which x would wait for microseconds.
  if constexpr (!kSplitsAhead<Swiglu, C>) split_rows();
  if (!early && team < shape.source_rows()) arrive_barrier(&x_ready);

  const auto place = [&](int expert, int tile) {
    return a.packed + int64_t{expert * tiles + tile} * layout.tile_bytes;
  };
  const auto expert_of = [&](int segment) { return segments.expert[segments.first[segment]]; };
  if (!early) find_tiles(segments.count);
  int unit = mine.begin + team;
  Part<Block, C::kSteps> part;
  if (unit < mine.end) {
    if (!early) expert = expert_of(at.segment);
    part.load(place(expert, at.tile), step, steps, lane);
  }
  if (early) __syncthreads();
  if (unit >= mine.end) return;
  if (!early) wait_barrier(&x_ready, 0);

  TeamSums team_sums{inboxes[team],
                     reinterpret_cast<float2*>(shared + a.sent) + team * 2 * (a.parts - 1) * 32,
                     a.parts - 1};
#pragma unroll 1
  while (unit < mine.end) {
    unit += a.teams;
    Cursor following = at;
    following.advance(a.teams, tiles);
    const uint8_t* next =
        unit < mine.end ? place(expert_of(following.segment), following.tile) : nullptr;
    const int begins = segments.first[at.segment], rows = segments.first[at.segment + 1] - begins;
    // Lanes beyond the rows repeat the last: their sums are not written. In operand B lanes 4 * n
    // and following have column n, a digit of row n / 2; in the sums a lane has row l % 4.
    const auto source = [&](int row) { return segments.source[begins + min(row, rows - 1)]; };
    const uint8_t* lane_digits =
        digits.plane(source(lane / 8), lane / 4 % 2) + step * kStepK + lane % 4 * 16;
    const float unit_of_x = digits.scale(source(lane % 4), p);
    const uint32_t scale = part.scale, bias = part.bias;
    Sums sums = multiply_part<T, Block, C::kSteps>(part, lane_digits, steps, next, step, lane);
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

struct Plan {
  StreamForm form;
  StreamArgs args;
  int shared;
};

Plan plan(const QmoeShape& shape, const DeviceFacts& device) {
  const StreamPlan divided = stream_plan(shape, device.processors);
  Plan plan{};
  plan.form = divided.form;
  StreamArgs& a = plan.args;
  a.layout = StreamLayout::of(shape);
  a.parts = divided.parts;
  a.teams = divided.teams;
  a.part_steps = a.layout.steps / a.parts;
  a.longer = a.layout.steps % a.parts;
  a.share = 1 / static_cast<float>(device.processors);
  a.scales = shape.source_rows() * 2 * Digits::plane_bytes(shape.k);
  a.sent = a.scales + (shape.source_rows() * a.parts * 4 + 15) / 16 * 16;
  plan.shared = a.sent + 2 * a.teams * (a.parts - 1) * 32 * static_cast<int>(sizeof(float2));
  return plan;
}

template <class T, int Block, bool Swiglu, class C>
void launch_config(const Plan& plan, const Launch& where) {
  const auto kernel = stream_kernel<T, Block, Swiglu, C>;
  const auto shared = static_cast<size_t>(plan.shared);
  const auto blocks = static_cast<unsigned>(where.device.processors);
  const auto threads = static_cast<unsigned>(plan.args.parts * plan.args.teams * 32);
  allow_shared(kernel, shared);
  if constexpr (C::kDependent) {
    launch_dependent(kernel, blocks, threads, shared, where.stream, plan.args);
  } else {
    kernel<<<blocks, threads, shared, stream_of(where)>>>(plan.args);
    check_launch("stream_kernel");
  }
}

template <class C>
using Alone = C;

template <class T, int Block, bool Swiglu, template <class> class How>
void launch_kernel(const Plan& plan, const Launch& where) {
  switch (plan.form) {
    case StreamForm::many_tokens:
      return launch_config<T, Block, Swiglu, How<ManyTokens>>(plan, where);
    case StreamForm::one_token:
      return launch_config<T, Block, Swiglu, How<OneToken>>(plan, where);
    case StreamForm::one_token_narrow:
      return launch_config<T, Block, Swiglu, How<OneTokenNarrow>>(plan, where);
  }
}

template <class T, bool Swiglu, template <class> class How>
void launch_type(const Plan& plan, const Launch& where) {
  const QmoeShape& shape = plan.args.args.shape;
  if (shape.block == shape.k) return launch_kernel<T, 0, Swiglu, How>(plan, where);
  if (shape.block == 32) return launch_kernel<T, 32, Swiglu, How>(plan, where);
  launch_kernel<T, 64, Swiglu, How>(plan, where);  // 128 too: its layout has every factor twice
}

template <bool Swiglu, template <class> class How>
void launch_product(const QmoeArgs& args, const uint8_t* packed, const Launch& where) {
  Plan planned = plan(args.shape, where.device);
  planned.args.args = args;
  planned.args.packed = packed;
  if (args.shape.dtype == DType::f16) return launch_type<Half, Swiglu, How>(planned, where);
  launch_type<Bfloat, Swiglu, How>(planned, where);
}

template <class P>
void launch(P& problem, const Launch& where) {
  constexpr bool kSwiglu = std::is_same_v<P, QmoeFc1>;
  launch_product<kSwiglu, Alone>(problem.args(), stream_packed(problem), where);
}

}  // namespace

std::string stream_unsupported(const QmoeShape& s, const DeviceFacts& device) {
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
  if (planned.args.parts > ManyTokens::kWarps ||
      planned.shared + kStatic > device.shared_per_block) {
    return fmt::format("{} rows of K = {} need {} warps and {} bytes of shared memory",
                       s.source_rows(), s.k, planned.args.parts, planned.shared);
  }
  return {};
}

void launch_stream_step(const QmoeArgs& args, const uint8_t* packed, const Launch& where) {
  args.shape.swiglu ? launch_product<true, Dependent>(args, packed, where)
                    : launch_product<false, Dependent>(args, packed, where);
}

namespace {

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "stream_imma",
      .backend = Backend::cuda,
      .help =
          "weights streamed into int8 tensor cores, x as two digits; 4 rows of an expert at once",
      .launch = launch<P>,
      .prepare = [](P& problem, const Launch& where) { stream_pack(problem, stream_of(where)); },
      .unsupported =
          [](const Case& c, const DeviceFacts& device) {
            return stream_unsupported(P::shape_of(c), device);
          },
      // x as two digits; measured in fp16: 1e-4.
      .between = 0x1p-12};
}

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>());
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>());

}  // namespace
}  // namespace moegate::qmoe
