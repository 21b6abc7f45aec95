// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (mbarrier)
// The w4 products at decode, up to 8 rows of an expert, as one stream of weights: one block per SM
// takes an equal share of all row blocks' panels (packed.cuh). A team of its warps takes a panel,
// each warp a part of K, whose units it has in registers; a register that was multiplied asks for
// the same unit of the team's next panel, whatever the expert. So up to 100 KB per SM are always on
// their way, also for one token.
//
// Rows of x wait in shared memory, those of the next row block beside those of this one. The parts
// of a panel are summed through shared memory in their order, by the warps of a team in turn. How K
// is cut follows from K alone, so that a row's bits do not depend on the batch.
//
// Floor: the weights of the experts that have rows, 8.8 MB each in gpt-oss's gate-up, behind two
// round trips to memory: ids, then the first weights with x. The number of row blocks would be a
// third: a launch first takes it to be the most that is possible, which is right for one token.
//
// A unit, 544 bytes of MXFP4, takes 63 instructions of a warp, where all parts have equally many.
// On an H100 (419b00d6), us at 1, 8 and 32 tokens of gpt-oss-20b, stream_mma in brackets: gate-up
// 18.9, 73.8, 106 (19.4, 75.5, 112), down 12.9, 41.1, 57.5 (13.3, 40.3, 67.1); Kimi-K2's int4
// gate-up 12.0, 52.7, 147 (23.2, 51.9, 150). It reads 2.6 TB/s from 8 tokens on, 1.9 at one. There
// a third of all samples are warps that wait for the copies of x, and cp.async.wait_all does not
// come back before the weights that were asked for earlier. Bulk copies of the first rows, which
// are waited for apart, gain 1 to 2 % (H200); of all rows, with barriers of their own, they take
// registers from the loop, and 7 to 9 % more time. Prefetching a team's next panel, or two, to L2
// costs 10 and 16 % at one token, 1 to 7 % beyond (H200).
#include <algorithm>

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/streaming.cuh"
#include "kernels/w4_moe/stream.cuh"

namespace moegate::w4_moe {
namespace {

constexpr int kRows = 8;  // of a row block
constexpr int kMostWarps = 20;
constexpr int kMostUnits = 9;      // of a part
constexpr int kMostSlots = 16;     // rows of x in shared memory
constexpr int kMostSegments = 32;  // row blocks of a share: a lane for each

/// Warps of a block, at most: they leave 96 registers for each thread, or 128, which int4 needs.
template <class W>
constexpr int kWarps = W::kScalesSums ? 16 : kMostWarps;

struct RowsArgs {
  W4Args args;
  PackedWeights weights;
  int blocks;              // of rows, the most that are possible
  int parts, teams;        // of a panel along K, a warp each; of so many warps
  int part_units, longer;  // units of a part; the first `longer` parts have one more
  int slots;               // rows of x that shared memory has room for
};

/// Barriers of a team: two inboxes for sums in turn, so that nobody waits for who adds up.
struct Inbox {
  uint64_t full[2], empty[2];
};

struct Shared {
  Inbox inboxes[kMostWarps];
  int32_t ids[kMostSegments * kRows];  // of the share's rows
  float routing[2][kRows];             // weights, of even and odd segments

  /// Starts the copy of ids, and initialises barriers, before a barrier of the block.
  __device__ void prepare(const RowsArgs& a, int first, int segments) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < segments * kRows; i += static_cast<int>(blockDim.x)) {
      copy_async<4>(shared_address(ids + i), a.args.sorted_token_ids + first * kRows + i, true);
    }
    if (thread >= a.teams) return;
    for (int box = 0; box < 2; ++box) {
      init_barrier(&inboxes[thread].full[box], a.parts);
      init_barrier(&inboxes[thread].empty[box], 1);
    }
  }
};

/// Panels [begin, end) of all row blocks' panels, which follow each other.
struct Share {
  int begin, end;

  __device__ explicit Share(int panels) {
    const auto before = [&](unsigned block) {
      return static_cast<int>(static_cast<unsigned>(panels) * block / gridDim.x);
    };
    begin = before(blockIdx.x);
    end = before(blockIdx.x + 1);
  }
};

/// A segment is the part of a share that is of one row block. What lanes know of those of a share:
/// the expert of segment l, and id l % 8 of the first.
struct Segments {
  int expert, id;

  __device__ Segments(const W4Args& args, int first, int blocks) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    expert = __ldg(args.expert_ids + min(first + lane, blocks - 1));
    id = __ldg(args.sorted_token_ids + min(first, blocks - 1) * kRows + lane % kRows);
  }
};

/// Rows of x of a segment in shared memory: where they begin, and how many they are.
struct Rows {
  int slot, count;

  /// `id`: of row l % 8. Segments lie at either end of the memory in turn.
  __device__ Rows(const RowsArgs& a, int id, int segment) {
    count = __popc(__ballot_sync(~0u, id < a.args.shape.rows()) & ((1u << kRows) - 1));
    slot = segment % 2 == 0 ? 0 : a.slots - count;
  }
  /// Starts copies, zeros behind K, and of the weights of the routing.
  __device__ void copy(const W4Args& args, int id, uint8_t* x, float* routing) const {
    const W4Shape& shape = args.shape;
    const int pieces = units_of(shape) * kUnitK / 8, there = shape.k / 8;
    const int thread = static_cast<int>(threadIdx.x);
    for (int row = 0; row < count; ++row) {
      const int r = __shfl_sync(~0u, id, row);
      const uint16_t* from = args.x + int64_t{shape.source(r)} * shape.k;
      const uint32_t to = shared_address(x + (slot + row) * pitch(shape));
      for (int piece = thread; piece < pieces; piece += static_cast<int>(blockDim.x)) {
        const bool in_row = piece < there;
        copy_async<16>(to + piece * 16, in_row ? from + piece * 8 : args.x, in_row);
      }
    }
    if (shape.down && thread < count) {
      copy_async<4>(shared_address(routing + thread), args.routing_weights + id, true);
    }
  }
  /// Where this lane's rows of matrices begin. Those behind the last are the last.
  __device__ uint32_t matrices(const W4Shape& shape, const uint8_t* x, int first_unit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return shared_address(x + (slot + min(lane % 8, count - 1)) * pitch(shape)) +
           first_unit * kUnitK * 2 + lane / 8 * 16;
  }
};

/// Where a lane's codes and scales of a part's first unit are. Kept as they are: the compiler would
/// find each unit's anew, in five instructions.
struct Source {
  const uint8_t *codes, *scales;

  template <class W>
  static __device__ Source of(const uint8_t* unit) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    constexpr int kScales = static_cast<int>(sizeof(typename W::Scales));
    Source s{unit + lane * 16, unit + kUnitCodes + lane / 4 * kScales};
    asm volatile("" : "+l"(s.codes), "+l"(s.scales));
    return s;
  }
};

/// A warp's part of a panel on its way through registers: at most kUnits units. kExact: all parts
/// have so many.
template <class W, int kUnits, bool kExact>
struct Part {
  Unit<W> units[kUnits];
  uint32_t low_bias, high_bias;  // bf16 of rows g and g + 8; the first part adds them

  __device__ void load(const Source& from, int i) {
    units[i].codes = load_streaming(from.codes + i * W::kUnitBytes);
    units[i].scales =
        __ldg(reinterpret_cast<const typename W::Scales*>(from.scales + i * W::kUnitBytes));
  }
  __device__ void load_all(const Source& from, int count) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      if (kExact || i < count) load(from, i);
    }
  }
  /// Not widened yet, which would wait for them.
  __device__ void load_biases(const W4Args& args, int expert, int panel) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const auto bias = [&](int i) {
      const int row = weight_row(args.shape, panel, i);
      return has_bias<W>(args, row)
                 ? uint32_t{__ldg(args.bias + int64_t{expert} * args.shape.n + row)}
                 : 0u;
    };
    low_bias = bias(g);
    high_bias = bias(g + 8);
  }
  /// Sums of the part, on top of biases; with `more` every register is loaded again from
  /// `next` as soon as it was multiplied. `x`: the lane's rows at the part's first unit.
  template <bool kWide>
  __device__ void multiply(uint32_t x, int count, const Source& next, bool more,
                           float (&sums)[1][4]) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      if (!kExact && i >= count) break;
      if constexpr (W::kScalesSums) {
        multiply_groups<1>(units[i], x + i * kUnitK * 2, 0, 1, sums);
      } else {
        multiply_unit<1, kWide>(units[i], x + i * kUnitK * 2, 0, 1, sums);
      }
      if (more) load(next, i);
    }
  }
};

/// How the warps of a team bring the sums of a panel's parts together.
struct Team {
  Inbox& inbox;
  float4* sent;  // [2][parts][32]
  int part, parts;
  int turn = 0;   // panels so far
  int adder = 0;  // the part whose warp adds up this time

  /// In the order of the parts. Returns whether this warp has the whole sums.
  __device__ bool add(float (&sums)[4]) {
    if (parts == 1) return true;
    const int box = turn % 2, lane = static_cast<int>(threadIdx.x) % 32;
    float4* const slots = sent + box * parts * 32 + lane;
    if (turn > 1) wait_barrier(&inbox.empty[box], (turn / 2 - 1) % 2);
    slots[part * 32] = make_float4(sums[0], sums[1], sums[2], sums[3]);
    arrive_warp(&inbox.full[box]);
    const bool adds = part == adder;
    if (adds) {
      wait_barrier(&inbox.full[box], turn / 2 % 2);
      float4 total = slots[0];
#pragma unroll 4
      for (int i = 1; i < parts; ++i) {
        const float4 other = slots[i * 32];
        total.x += other.x;
        total.y += other.y;
        total.z += other.z;
        total.w += other.w;
      }
      arrive_warp(&inbox.empty[box]);
      sums[0] = total.x, sums[1] = total.y, sums[2] = total.z, sums[3] = total.w;
    }
    ++turn;
    adder = adder + 1 == parts ? 0 : adder + 1;
    return adds;
  }
};

/// A panel of a segment, counted from the share's first.
struct Cursor {
  int segment, panel;

  __device__ void advance(int by, int panels) {
    panel += by;
    for (; panel >= panels; ++segment) panel -= panels;
  }
};

/// What a warp knows of its work, the same for all panels.
struct Warp {
  const RowsArgs& a;
  Shared& shared;
  uint8_t* x;  // [slots] rows
  Share mine;
  int first;       // row block
  int segments;    // of the share
  int experts;     // lane l: of segment l
  int first_unit;  // of the warp's part
  int units;       // of it
  bool adds_biases;

  template <class W>
  __device__ Source place(const Cursor& at) const {
    const W4Shape& shape = a.args.shape;
    const int expert = __shfl_sync(~0u, experts, at.segment);
    const int unit = (expert * panels_of(shape) + at.panel) * units_of(shape) + first_unit;
    return Source::of<W>(a.weights.units +
                         static_cast<uint32_t>(unit) * static_cast<uint32_t>(W::kUnitBytes));
  }
  template <class P>
  __device__ void load_biases(P& part, const Cursor& at) const {
    const int expert = __shfl_sync(~0u, experts, at.segment);
    if (adds_biases) part.load_biases(a.args, expert, at.panel);
  }
};

/// Multiplies the panels of the share that are the team's, of whose first one `part` has the units.
/// `rows`: of the first segment.
template <bool kWide, class W, int kUnits, bool kExact>
__device__ void multiply_share(const Warp& w, Team& team, Part<W, kUnits, kExact>& part, Rows rows,
                               Cursor at) {
  const RowsArgs& a = w.a;
  const W4Shape& shape = a.args.shape;
  const int panels = panels_of(shape), lane = static_cast<int>(threadIdx.x) % 32;
  int left = w.mine.end - w.first * panels;  // panels from this segment's first on
  for (int segment = 0;; ++segment) {
    const bool is_last = segment + 1 == w.segments;
    const int ahead = is_last ? shape.rows() : w.shared.ids[(segment + 1) * kRows + lane % kRows];
    const Rows next_rows(a, ahead, segment + 1);
    float* const next_routing = w.shared.routing[(segment + 1) % 2];
    const bool both_fit = rows.count + next_rows.count <= a.slots;
    if (both_fit) next_rows.copy(a.args, ahead, w.x, next_routing);
    const uint32_t x = rows.matrices(shape, w.x, w.first_unit);
    const Work work{w.shared.ids + segment * kRows, w.shared.routing[segment % 2], rows.count, 0};
    while (at.segment == segment && at.panel < left) {
      Cursor following = at;
      following.advance(a.teams, panels);
      const bool more = (following.segment - segment) * panels + following.panel < left;
      const Source next = w.place<W>(more ? following : at);
      float sums[1][4] = {};
      if (w.adds_biases) {
        sums[0][0] = sums[0][1] = bits_float(part.low_bias << 16);
        sums[0][2] = sums[0][3] = bits_float(part.high_bias << 16);
      }
      if (more) w.load_biases(part, following);
      part.template multiply<kWide>(x, w.units, next, more, sums);
      if (team.add(sums[0])) write_panel<1>(a.args, work, Biases{}, at.panel, sums);
      at = following;
    }
    if (is_last) return;
    if (!both_fit) {
      __syncthreads();
      next_rows.copy(a.args, ahead, w.x, next_routing);
    }
    wait_all_copies();
    __syncthreads();
    rows = next_rows;
    left -= panels;
  }
}

/// A block's share and its segments. Their ids are at first asked for as if all row blocks that are
/// possible were there.
struct Found {
  Share mine;
  Segments segments;

  __device__ explicit Found(const RowsArgs& a)
      : mine(a.blocks * panels_of(a.args.shape)),
        segments(a.args, mine.begin / panels_of(a.args.shape), a.blocks) {
    const int panels = panels_of(a.args.shape), blocks = __ldg(a.args.padded_rows) / kRows;
    if (blocks == a.blocks) return;
    mine = Share(blocks * panels);
    if (mine.begin < mine.end) segments = Segments(a.args, mine.begin / panels, blocks);
  }
};

template <class W, int kUnits, bool kExact>
__global__ void __launch_bounds__(kWarps<W> * 32, 1)
    stream_rows_kernel(const __grid_constant__ RowsArgs a) {
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ Shared shared;
  const W4Args& args = a.args;
  const W4Shape& shape = args.shape;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int panels = panels_of(shape);
  // In a chain the sorted rows come right before gate-up, of down only x.
  if (!shape.down) wait_for_dependency();
  allow_dependents();
  const bool wide = is_wide<W>(a.weights);
  const Found share(a);
  const Share& mine = share.mine;
  const Segments& found = share.segments;
  if (mine.begin >= mine.end) {
    wait_for_dependency();
    return;
  }
  // Here all of these are there; who looks at the flag later waits for the weights, too.
  asm volatile("" ::"r"(static_cast<int>(wide)));

  const int first = mine.begin / panels, segments = (mine.end - 1) / panels - first + 1;
  const int team = warp / a.parts, p = warp - team * a.parts;
  const Warp work{a,
                  shared,
                  memory,
                  mine,
                  first,
                  segments,
                  found.expert,
                  p * a.part_units + min(p, a.longer),
                  a.part_units + (p < a.longer),
                  p == 0};
  // Rows of x first, if they are there: behind weights they would come late.
  const Rows rows(a, found.id, 0);
  const bool x_comes_late = shape.early && shape.down;
  if (!x_comes_late) rows.copy(args, found.id, memory, shared.routing[0]);
  Cursor at{0, mine.begin - first * panels};
  at.advance(team, panels);
  Part<W, kUnits, kExact> part;
  if (at.segment * panels + at.panel < mine.end - first * panels) {
    work.load_biases(part, at);
    part.load_all(work.place<W>(at), work.units);
  }
  if (x_comes_late) {
    wait_for_dependency();
    rows.copy(args, found.id, memory, shared.routing[0]);
  }
  shared.prepare(a, first, segments);
  wait_all_copies();
  __syncthreads();
  Team of_parts{
      shared.inboxes[team],
      reinterpret_cast<float4*>(memory + a.slots * pitch(shape)) + team * 2 * a.parts * 32, p,
      a.parts};
  if (wide) {
    multiply_share<W::kMayBeWide>(work, of_parts, part, rows, at);
  } else {
    multiply_share<false>(work, of_parts, part, rows, at);
  }
}

/// How a shape is cut. Nothing of it but the number of row blocks depends on the rows.
struct Plan {
  int units;  // of a part, all of so many; 0: not of equally many
  RowsArgs args;
  int most_warps, shared_bytes;
};

Plan plan(const W4Shape& shape, const DeviceFacts& device) {
  const int units = units_of(shape);
  Plan plan{};
  for (const int exact : {8, kMostUnits}) {
    if (units % exact == 0) plan.units = exact;
  }
  plan.most_warps = with_format(shape, [&]<class W>() { return kWarps<W>; });
  RowsArgs& a = plan.args;
  const int of_part = plan.units ? plan.units : kMostUnits;
  a.blocks = static_cast<int>((shape.capacity() + kRows - 1) / kRows);
  a.parts = (units + of_part - 1) / of_part;
  a.teams = std::max(plan.most_warps / a.parts, 1);
  a.part_units = units / a.parts;
  a.longer = units % a.parts;
  const int sums = 2 * a.teams * a.parts * 32 * static_cast<int>(sizeof(float4));
  constexpr int kStatic = static_cast<int>(sizeof(Shared)) + 1024;
  a.slots = std::min((static_cast<int>(device.shared_per_block) - kStatic - sums) / pitch(shape),
                     kMostSlots);
  plan.shared_bytes = a.slots * pitch(shape) + sums;
  return plan;
}

template <class W, int kUnits, bool kExact>
void launch_plan(const Plan& plan, const Launch& where) {
  const auto kernel = stream_rows_kernel<W, kUnits, kExact>;
  const auto shared = static_cast<size_t>(plan.shared_bytes);
  allow_shared(kernel, shared);
  launch_early_if(plan.args.args.shape.early, kernel,
                  static_cast<unsigned>(where.device.processors),
                  static_cast<unsigned>(plan.args.parts * plan.args.teams * 32), shared,
                  where.stream, plan.args);
}

void launch(const W4Args& args, const PackedWeights& weights, const Launch& where) {
  Plan planned = plan(args.shape, where.device);
  planned.args.args = args;
  planned.args.weights = weights;
  with_format(args.shape, [&]<class W>() {
    switch (planned.units) {
      case 8:
        return launch_plan<W, 8, true>(planned, where);
      case kMostUnits:
        return launch_plan<W, kMostUnits, true>(planned, where);
      default:
        return launch_plan<W, kMostUnits, false>(planned, where);
    }
  });
}

std::string unsupported(const W4Shape& shape, const DeviceFacts& device) {
  if (shape.block != kRows) {
    return fmt::format("takes blocks of {} rows, not of {}", kRows, shape.block);
  }
  if (units_bytes(shape) >= int64_t{1} << 32) return "takes weights of less than 4 GiB";
  // A share touches two row blocks more than it has whole ones.
  const int64_t most = int64_t{kMostSegments - 2} * device.processors;
  if (shape.capacity() > most * kRows) return fmt::format("takes up to {} blocks of rows", most);
  const Plan planned = plan(shape, device);
  if (planned.args.parts <= planned.most_warps && planned.args.slots >= kRows) return {};
  return fmt::format("{} rows of K = {} do not fit in shared memory", kRows, shape.k);
}

}  // namespace

const PackedKernel kStreamRows = {
    .name = "stream_rows",
    .help = "an equal share of the weights per SM into registers, K cut over warps",
    .scaling = W4Scaling::exact,
    .group = 1,
    .launch = launch,
    .unsupported = unsupported};

namespace {
const Kernel<W4GateUp> gate_up(packed_spec<W4GateUp, kStreamRows>());
const Kernel<W4Down> down(packed_spec<W4Down, kStreamRows>());
}  // namespace
}  // namespace moegate::w4_moe
