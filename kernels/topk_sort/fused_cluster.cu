// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (clusters)
// topk_sort in one launch: the first thread-block cluster routes and sorts, each of its blocks a
// chunk of the tokens with a warp per token; the blocks tell each other how many rows they have of
// each expert through distributed shared memory, and each then knows where its own rows go. The
// other clusters zero moe_buf meanwhile.
//
// Measured on an H200, cold L2, in a graph; span in us for T = 1, 8, 32, 64 (E256: k 8, H 7168,
// softmax, bf16; E128: k 4, H 2880, topk_softmax, bf16):
//   E256  3.65 3.87 4.10 4.19    E128  3.30 3.65 3.81 3.84    (chain3 at T = 64: 9.95, 7.58)
// E256 by noaux_tc in fp32 at T = 1 and 8: 4.63 4.90 (chain3 8.66 9.03).
// Floor: launch 0.7, cold load 0.7, stores drained 0.5: about 2. Of the 4.19, by leaving out
// stages: launch 0.74, load 0.73, selection 1.15 (latency of k rounds of redux, vote and pop; the
// same with a warm L2), counts to all blocks 0.61, scan 0.45, rows 0.16, padding 0.45. A cluster
// barrier with release in place of the counting barrier costs 0.6 more; 8 blocks in place of 16,
// 0.5 more.
#include <algorithm>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/place_rows.cuh"
#include "kernels/topk_sort/select_topk.cuh"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate::topk_sort {
namespace {

using namespace cuda;

constexpr int kCluster = 16;      // blocks; more than 8 must be asked for, and Hopper grants it
constexpr int kChunkTokens = 32;  // per block: 512 tokens; at 1024 chain2 is faster
constexpr int kMaxTokens = kCluster * kChunkTokens;

constexpr int kMaxThreads = 512;  // at least one per expert; leaves 128 registers for each

struct Pair {
  int32_t expert;
  float weight;
};

/// Rows per expert travel as bytes, 8 to a word: [words_of(experts)] from each block.
__host__ __device__ int words_of(int experts) {
  return (experts + 7) / 8;
}

size_t shared_bytes(const TopkSortShape& shape, int chunk) {
  return place_bytes(shape.experts, 1) + size_t(kCluster + 1) * words_of(shape.experts) * 8 +
         size_t(chunk) * shape.topk * sizeof(Pair);
}

// Its stages share what they hold: NOLINTNEXTLINE(readability-function-size)
template <int N, bool Grouped>
__global__ void __launch_bounds__(kMaxThreads, 1)
    cluster_kernel(const __grid_constant__ TopkSortArgs args, int chunk) {
  const int rank = blockIdx.x;
  if (rank >= kCluster) {
    zero_moe_buf(args, int64_t{rank - kCluster} * blockDim.x + threadIdx.x,
                 int64_t{static_cast<int>(gridDim.x) - kCluster} * blockDim.x);
    return;
  }
  extern __shared__ uint4 shared[];
  __shared__ uint64_t slots[kMaxThreads / kWarp][kMaxTopk];
  __shared__ uint64_t inbox_barrier;
  const TopkSortShape& shape = args.shape;
  const int k = shape.topk, experts = shape.experts, words = words_of(experts);
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp, lane = threadIdx.x % kWarp;
  const int first = rank * chunk, tokens = min(chunk, shape.tokens - first);  // may be negative
  const PlaceTables tables = place_tables(shared, experts, 1);
  uint64_t* inbox = reinterpret_cast<uint64_t*>(shared + place_bytes(experts, 1) / 16);
  uint64_t* outbox = inbox + kCluster * words;
  Pair* pairs = reinterpret_cast<Pair*>(outbox + words);

  RawRow<N> next = load_row<N>(args, min(first + warp, shape.tokens - 1), lane);
  const LaneBias<N> bias = load_bias<Grouped, N>(args, lane);
  if (threadIdx.x == 0) prepare_inbox(&inbox_barrier, kCluster * words * 8);
  cluster_arrive();
  clear_marks(tables);
  __syncthreads();
  Chosen chosen;
  int weighed_later = -1;  // the warp's last token: its weights can wait until the counts travel
  const auto weigh = [&] {
    const float weight = weight_of<Grouped>(chosen, args, first + weighed_later);
    if (lane < k) pairs[weighed_later * k + lane] = {chosen.expert, weight};
  };
#pragma unroll 1
  for (int token = warp; token < tokens; token += warps) {
    if (weighed_later >= 0) weigh();
    const RawRow<N> raw = next;
    if (token + warps < tokens) next = load_row<N>(args, first + token + warps, lane);
    chosen = select_topk<Grouped>(raw, bias, shape, slots[warp]);
    if (lane < k) mark(tables, token, chosen.expert);
    weighed_later = token;
  }
  __syncthreads();

  const int expert = threadIdx.x;
  if (expert < experts)
    reinterpret_cast<uint8_t*>(outbox)[expert] = static_cast<uint8_t>(count_rows(tables, expert));
  __syncthreads();
  cluster_wait();  // all inboxes are ready
  for (int peer = warp; peer < kCluster; peer += warps)
    for (int word = lane; word < words; word += kWarp)
      send(&inbox[rank * words + word], &inbox_barrier, peer, outbox[word]);
  if (weighed_later >= 0) weigh();
  wait_inbox(&inbox_barrier);  // once all counts came, nobody touches this block's memory any more

  int rows = 0, earlier = 0;
  if (expert < experts) {
    const uint8_t* counts = reinterpret_cast<const uint8_t*>(inbox) + expert;
#pragma unroll
    for (int peer = 0; peer < kCluster; ++peer) {
      earlier = peer == rank ? rows : earlier;
      rows += counts[peer * words * 8];
    }
  }
  const int padded = begin_rows(tables, rows, earlier, shape.unit);
  if (rank == 0 && expert == experts - 1) write_num_valid(args, padded);
  __syncthreads();
  for (int token = warp; token < tokens; token += warps) {
    if (lane >= k) break;  // each lane placed its own pairs in shared memory
    const Pair pair = pairs[token * k + lane];
    write_row(args, row_of(tables, token, pair.expert), first + token, lane, pair.weight);
  }
  for (int e = rank + warp * kCluster; e < experts; e += warps * kCluster)
    pad_expert(tables, args, e);
}

template <int N, bool Grouped>
void launch_lanes(const TopkSortArgs& args, const Launch& where) {
  const TopkSortShape& shape = args.shape;
  const int chunk = (shape.tokens + kCluster - 1) / kCluster;
  const size_t shared = shared_bytes(shape, chunk);
  const auto kernel = cluster_kernel<N, Grouped>;
  const int wanted = std::max((shape.experts + kWarp - 1) / kWarp, chunk) * kWarp;

  const ClusterLaunch launch(kernel, std::max(where.device.processors / kCluster, 2), kCluster,
                             std::min(wanted, kMaxThreads), shared, where.stream);
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, args, chunk), "cluster_kernel");
}

}  // namespace

void launch_fused_cluster(const TopkSortArgs& args, void* workspace, const Launch& where) {
  if (args.shape.tokens > kMaxTokens) return launch_chain2(args, workspace, where);
  for_lanes(args.shape, [&]<int N, bool Grouped>() { launch_lanes<N, Grouped>(args, where); });
}

namespace {

const Kernel<TopkSort> kernel({
    .name = "fused_cluster",
    .backend = Backend::cuda,
    .help = "one launch: a cluster of blocks routes and sorts through distributed shared memory",
    .launch = launch_variant<launch_fused_cluster>,
    .workspace = [](const Case& c, const DeviceFacts&) { return workspace_beyond(c, kMaxTokens); },
    .unsupported = warp_select_unsupported,
    .path = [](const Case& c, const DeviceFacts&) { return path_up_to(c, kMaxTokens); },
});

}  // namespace
}  // namespace moegate::topk_sort
