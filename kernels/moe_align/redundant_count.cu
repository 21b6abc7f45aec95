// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (clusters)
// moe_align in one launch without a barrier over the grid: a team of blocks counts all rows and so
// knows every row's place; many teams do the same work, and each writes its share of the experts
// only. Reading and counting again is cheaper than telling others, and writing, scattered over the
// output, is what takes many SMs. Few rows: a team is one block. More: a cluster of 16, whose
// blocks count a chunk each and tell each other the sums through distributed shared memory.
//
// Inside a block every warp ranks its own run of rows, 32 at a time, by matching ids over its
// lanes; no atomic decides an order, so rows ascend in every group and launches agree bit for bit.
//
// Floor: launch, one cold load, stores drained. Measured on an H200, cold, in a graph, E = 256, k =
// 8, BM = 64, us for T = 1, 64, 512, 4096, 16384: 1.84 2.58 3.74 10.8 25.0
// (count_scan_scatter: 3.99 4.48 5.45 17.0 56.7). One block per team takes 6.9 us at T = 512, the
// cluster 3.7.
#include <algorithm>

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_align/padding.cuh"

namespace moegate::moe_align {
namespace {

using namespace cuda;

constexpr int kClusterBlocks = 16;  // more than 8 must be asked for, and Hopper grants it
constexpr int kMaxThreads = 1024;   // at least one per expert
constexpr int kMaxItems = 16;       // rows of a thread, which it keeps in registers
constexpr int kMaxRows = kClusterBlocks * kMaxThreads * kMaxItems;
constexpr int kAloneRows = 2048;  // up to these a team is one block
constexpr int kBatch = 8;         // warps whose counts a thread has in flight at once
constexpr int kThreadStep = kBatch * kWarp;

/// A power of 2; clusters take most SMs of an H200.
template <int Blocks>
constexpr int kTeams = Blocks == 1 ? 32 : 8;

/// Counts of a row of a table: one per expert, one for skipped rows, whole 8-byte words.
__host__ __device__ int stride_of(int experts) {
  return (experts + 1 + 3) / 4 * 4;
}

struct Tables {
  uint16_t* earlier;  // [warps][stride] the warp's rows of the expert, then those of earlier warps
  uint16_t* outbox;   // [stride] the block's rows of each expert
  uint16_t* inbox;    // [blocks of the team][stride] everybody's
  int2* groups;       // [experts] first block, rows
  int32_t* row_at;    // [experts] where the block's rows of the expert begin
  int stride;
};

size_t shared_bytes(int experts, int warps, int blocks) {
  const size_t counts = static_cast<size_t>(warps + (blocks > 1 ? blocks + 1 : 0));
  return counts * static_cast<size_t>(stride_of(experts)) * sizeof(uint16_t) +
         static_cast<size_t>(experts) * (sizeof(int2) + sizeof(int32_t));
}

template <int Blocks>
__device__ Tables tables_in(void* shared, int experts, int warps) {
  Tables t;
  t.stride = stride_of(experts);
  t.earlier = static_cast<uint16_t*>(shared);
  t.outbox = t.earlier + warps * t.stride;
  t.inbox = t.outbox + t.stride;
  uint16_t* end = Blocks > 1 ? t.inbox + Blocks * t.stride : t.outbox;
  t.groups = reinterpret_cast<int2*>(end);
  t.row_at = reinterpret_cast<int32_t*>(t.groups + experts);
  return t;
}

/// A warp ranks its rows: `place` is how many of its earlier rows have the same expert. Leaves in
/// `mine` how many it has of each. Skipped rows count in a column of their own.
template <int Items>
__device__ void rank_rows(const MoeAlignShape& shape, const int32_t (&id)[Items], uint16_t* mine,
                          int (&place)[Items]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int column = shape.has(id[i]) ? id[i] : shape.experts;
    const unsigned peers = __match_any_sync(kAllLanes, column);
    const int before = mine[column];
    place[i] = before + __popc(peers & ((1u << lane) - 1));
    __syncwarp();
    const bool last = peers >> lane == 1;
    if (last) mine[column] = static_cast<uint16_t>(before + __popc(peers));
    __syncwarp();
  }
}

/// Rows of one expert in the block, given its column of `earlier`; each warp's count becomes that
/// of the warps before it.
__device__ int sum_warps(uint16_t* column, int warps, int stride) {
  int rows = 0;
  for (int w = 0; w < warps; w += kBatch) {
    int here[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) here[i] = column[(w + i) * stride];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      column[(w + i) * stride] = static_cast<uint16_t>(rows);
      rows += here[i];
    }
  }
  return rows;
}

/// Every block of a cluster tells all others its outbox; back once all inboxes are full. Nobody
/// touches this block's memory any more then, so that it may end.
__device__ void exchange(const Tables& t, uint64_t* barrier, int rank) {
  const int words = t.stride / 4, warps = blockDim.x / kWarp;
  auto* inbox = reinterpret_cast<uint64_t*>(t.inbox) + rank * words;
  const auto* outbox = reinterpret_cast<const uint64_t*>(t.outbox);
  for (int peer = threadIdx.x / kWarp; peer < kClusterBlocks; peer += warps)
    for (int word = threadIdx.x % kWarp; word < words; word += kWarp)
      send(&inbox[word], barrier, peer, outbox[word]);
  wait_inbox(barrier);
}

/// A warp writes the padding of one expert and the expert of its blocks.
__device__ void pad_expert(const MoeAlignArgs& args, int expert, int2 group) {
  const int lane = threadIdx.x % kWarp, first = group.x, rows = group.y;
  const int blocks = blocks_for(args.shape, rows), padding = args.shape.rows();
  int32_t* out = args.sorted_token_ids + first * args.shape.block;
  for (int i = rows + lane; i < blocks * args.shape.block; i += kWarp) out[i] = padding;
  for (int i = lane; i < blocks; i += kWarp) args.expert_ids[first + i] = expert;
}

template <int Items, int Blocks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    redundant_count_kernel(const __grid_constant__ MoeAlignArgs args) {
  allow_dependents();
  extern __shared__ uint4 shared[];
  __shared__ int32_t sums[kWarp];
  __shared__ uint64_t inbox_barrier;
  const MoeAlignShape& shape = args.shape;
  const int rank = blockIdx.x % Blocks, team = blockIdx.x / Blocks, expert = threadIdx.x;
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp, lane = threadIdx.x % kWarp;
  const Tables t = tables_in<Blocks>(shared, shape.experts, warps);
  uint16_t* mine = t.earlier + warp * t.stride;

  const int first_row = (rank * warps + warp) * Items * kWarp + lane;
  int32_t id[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int row = first_row + i * kWarp;
    id[i] = row < shape.rows() ? __ldg(&args.topk_ids[row]) : -1;
  }
  if constexpr (Blocks > 1) {
    if (threadIdx.x == 0) prepare_inbox(&inbox_barrier, Blocks * t.stride * sizeof(uint16_t));
    __syncwarp();
    cluster_arrive();
  }
  for (int i = lane; i < t.stride; i += kWarp) mine[i] = 0;
  __syncwarp();
  int place[Items];
  rank_rows(shape, id, mine, place);
  __syncthreads();

  int rows = 0, earlier = 0;
  if (expert < shape.experts) rows = sum_warps(t.earlier + expert, warps, t.stride);
  if constexpr (Blocks > 1) {
    if (expert < shape.experts) t.outbox[expert] = static_cast<uint16_t>(rows);
    __syncthreads();
    cluster_wait();  // all inboxes are ready
    exchange(t, &inbox_barrier, rank);
    rows = 0;
    if (expert < shape.experts) {
#pragma unroll
      for (int peer = 0; peer < Blocks; ++peer) {
        earlier = peer == rank ? rows : earlier;
        rows += t.inbox[peer * t.stride + expert];
      }
    }
  }
  const int blocks = blocks_for(shape, rows);
  const int through = scan_block(blocks, sums), first_block = through - blocks;
  if (expert < shape.experts) {
    t.groups[expert] = make_int2(first_block, rows);
    t.row_at[expert] = first_block * shape.block + earlier;
  }
  if (blockIdx.x == 0 && expert == shape.experts - 1)
    *args.num_tokens_post_padded = through * shape.block;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Items; ++i)
    if (shape.has(id[i]) && id[i] % kTeams<Blocks> == team)
      args.sorted_token_ids[t.row_at[id[i]] + mine[id[i]] + place[i]] = first_row + i * kWarp;
  for (int e = team + kTeams<Blocks> * (rank + Blocks * warp); e < shape.experts;
       e += kTeams<Blocks> * Blocks * warps)
    pad_expert(args, e, t.groups[e]);
}

template <int Items, int Blocks>
void launch_team(const MoeAlignArgs& args, int threads, cudaStream_t stream) {
  const auto kernel = redundant_count_kernel<Items, Blocks>;
  const size_t shared = shared_bytes(args.shape.experts, threads / kWarp, Blocks);
  const ClusterLaunch launch(kernel, kTeams<Blocks>, Blocks, threads, shared, stream);
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, args), "redundant_count_kernel");
}

int blocks_of_team(const MoeAlignShape& shape) {
  return shape.rows() <= kAloneRows ? 1 : kClusterBlocks;
}

int round_up(int value, int step) {
  return (value + step - 1) / step * step;
}

}  // namespace

void launch_redundant_count(const MoeAlignArgs& args, const Launch& where) {
  const auto stream = stream_of(where);
  const int blocks = blocks_of_team(args.shape);
  const int rows = (args.shape.rows() + blocks - 1) / blocks;  // of a block
  const int threads =
      std::min(round_up(std::max(rows, args.shape.experts), kThreadStep), kMaxThreads);
  const int items = (rows + threads - 1) / threads;
  if (blocks == 1) {
    if (items == 1) return launch_team<1, 1>(args, threads, stream);
    if (items == 2) return launch_team<2, 1>(args, threads, stream);
    return launch_team<4, 1>(args, threads, stream);
  }
  if (items == 1) return launch_team<1, kClusterBlocks>(args, threads, stream);
  if (items == 2) return launch_team<2, kClusterBlocks>(args, threads, stream);
  if (items <= 4) return launch_team<4, kClusterBlocks>(args, threads, stream);
  if (items <= 8) return launch_team<8, kClusterBlocks>(args, threads, stream);
  launch_team<kMaxItems, kClusterBlocks>(args, threads, stream);
}

std::string redundant_count_unsupported(int rows) {
  if (rows <= kMaxRows) return "";
  return fmt::format("{} rows: a cluster's registers hold {}", rows, kMaxRows);
}

namespace {

std::string unsupported(const Case& c, const DeviceFacts&) {
  return redundant_count_unsupported(MoeAlignShape::of(c).rows());
}

std::string path(const Case& c, const DeviceFacts&) {
  return blocks_of_team(MoeAlignShape::of(c)) == 1 ? "teams of a block" : "teams of a cluster";
}

const Kernel<MoeAlign> kernel({
    .name = "redundant_count",
    .backend = Backend::cuda,
    .help = "one launch: every block or cluster counts all and writes its experts; rows in order",
    .launch = [](MoeAlign& problem,
                 const Launch& where) { launch_redundant_count(problem.args(), where); },
    .unsupported = unsupported,
    .path = path,
});

}  // namespace
}  // namespace moegate::moe_align
