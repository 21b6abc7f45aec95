// SPDX-License-Identifier: Apache-2.0
// topk_sort in one launch: the first thread-block cluster routes and sorts, each of its blocks a
// chunk of the tokens with a warp per token; the blocks tell each other how many rows they have of
// each expert through distributed shared memory, and each then knows where its own rows go. The
// other clusters zero moe_buf meanwhile.
#include <algorithm>

#include "kernels/topk_sort/cluster.cuh"
#include "kernels/topk_sort/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/place_rows.cuh"
#include "kernels/topk_sort/select_topk.cuh"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate {
namespace routing {
namespace {

constexpr int kCluster = 8;        // blocks; the most that every device grants
constexpr int kChunkTokens = 128;  // rows of an expert in a chunk travel as a byte
constexpr int kMaxTokens = kCluster * kChunkTokens;

/// 16 scores per lane leave registers for 512 threads only.
template <int N>
constexpr int kMaxThreads = N < 16 ? 1024 : 512;

struct Pair {
  int32_t expert;
  float weight;
};

size_t shared_bytes(const TopkSortShape& shape, int chunk, int cluster) {
  return place_bytes(shape.experts, (chunk + 31) / 32) +
         size_t(chunk) * shape.topk * sizeof(Pair) + size_t(cluster) * shape.experts;
}

template <int N>
__global__ void __launch_bounds__(kMaxThreads<N>, 1)
    cluster_kernel(const __grid_constant__ TopkSortArgs args, int chunk) {
  const int rank = blockIdx.x, cluster = cluster_size();
  if (rank >= cluster) {
    zero_moe_buf(args, int64_t{rank - cluster} * blockDim.x + threadIdx.x,
                 int64_t{static_cast<int>(gridDim.x) - cluster} * blockDim.x);
    return;
  }
  cluster_arrive();  // this block runs: its shared memory can be written to
  extern __shared__ uint4 shared[];
  __shared__ uint64_t slots[kMaxThreads<N> / kWarp][kMaxTopk];
  const TopkSortShape& shape = args.shape;
  const int k = shape.topk, experts = shape.experts, words = (chunk + 31) / 32;
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp, lane = threadIdx.x % kWarp;
  const int first = rank * chunk, tokens = min(chunk, shape.tokens - first);  // may be negative
  const PlaceTables tables = place_tables(shared, experts, words);
  Pair* pairs = reinterpret_cast<Pair*>(shared + place_bytes(experts, words) / 16);
  uint8_t* chunk_rows = reinterpret_cast<uint8_t*>(pairs + chunk * k);  // [cluster][experts]

  RawRow<N> next = load_row<N>(args, min(first + warp, shape.tokens - 1), lane);
  const LaneBias<N> bias = load_bias<N>(args, lane);
  clear_marks(tables);
  __syncthreads();
  Chosen chosen;
  int weighed_later = -1;  // the warp's last token: its weights can wait for the barrier
  for (int token = warp; token < tokens; token += warps) {
    if (weighed_later >= 0) {
      const float weight = weight_of(chosen, args, first + weighed_later);
      if (lane < k) pairs[weighed_later * k + lane].weight = weight;
    }
    const RawRow<N> raw = next;
    if (token + warps < tokens) next = load_row<N>(args, first + token + warps, lane);
    chosen = select_topk(raw, bias, shape, slots[warp]);
    if (lane < k) {
      mark(tables, token, chosen.expert);
      pairs[token * k + lane].expert = chosen.expert;
    }
    weighed_later = token;
  }
  __syncthreads();
  cluster_wait();  // all blocks run

  const int expert = threadIdx.x;
  if (expert < experts) {
    const int rows = count_rows(tables, expert);
    for (int peer = 0; peer < cluster; ++peer)
      store_to_peer(&chunk_rows[rank * experts + expert], peer, rows);
  }
  cluster_arrive();
  if (weighed_later >= 0) {
    const float weight = weight_of(chosen, args, first + weighed_later);
    if (lane < k) pairs[weighed_later * k + lane].weight = weight;
  }
  cluster_wait();  // all counts are here; nobody touches a peer's memory from now on

  int rows = 0, earlier = 0;
  if (expert < experts) {
    for (int peer = 0; peer < cluster; ++peer) {
      if (peer == rank) earlier = rows;
      rows += chunk_rows[peer * experts + expert];
    }
  }
  const int padded = begin_rows(tables, rows, earlier, shape.unit);
  if (rank == 0 && expert == experts - 1) write_num_valid(args, padded);
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * k; i += blockDim.x) {
    const int token = i / k;
    write_row(args, row_of(tables, token, pairs[i].expert), first + token, i % k, pairs[i].weight);
  }
  for (int e = rank + warp * cluster; e < experts; e += warps * cluster)
    pad_expert(tables, args, e);
}

template <int N>
void launch_lanes(const TopkSortArgs& args, int cluster, const Target& target) {
  const TopkSortShape& shape = args.shape;
  const int chunk = (shape.tokens + cluster - 1) / cluster;
  const size_t shared = shared_bytes(shape, chunk, cluster);
  allow_shared(cluster_kernel<N>, shared);
  const int wanted = std::max((shape.experts + kWarp - 1) / kWarp, chunk) * kWarp;

  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = std::max(target.device.processors / cluster, 2) * cluster;
  config.blockDim = std::min(wanted, kMaxThreads<N>);
  config.dynamicSmemBytes = shared;
  config.stream = target.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, cluster_kernel<N>, args, chunk), "cluster_kernel");
}

}  // namespace

void launch_fused_cluster(const TopkSortArgs& args, void* workspace, const Target& target) {
  if (args.shape.tokens > kMaxTokens) return launch_chain2(args, workspace, target);
  const int experts = args.shape.experts;
  if (experts <= 4 * kWarp) return launch_lanes<4>(args, kCluster, target);
  if (experts <= 8 * kWarp) return launch_lanes<8>(args, kCluster, target);
  launch_lanes<16>(args, kCluster, target);
}

}  // namespace routing

namespace {

const Kernel<TopkSort> kernel({
    .name = "fused_cluster",
    .backend = Backend::cuda,
    .help = "one launch: a cluster of blocks routes and sorts through distributed shared memory",
    .launch =
        [](TopkSort& problem, const Launch& launch) {
          routing::launch_fused_cluster(problem.args(), problem.workspace(),
                                        {launch.device, static_cast<cudaStream_t>(launch.stream)});
        },
    .workspace =
        [](const Case& c, const DeviceFacts&) {
          const TopkSortShape shape = TopkSortShape::of(c);
          return shape.tokens > routing::kMaxTokens ? routing::chain_bytes(shape) : 0;
        },
    .unsupported =
        [](const Case& c, const DeviceFacts&) {
          return routing::warp_select_unsupported(TopkSortShape::of(c));
        },
    .path =
        [](const Case& c, const DeviceFacts&) -> std::string {
          const int tokens = TopkSortShape::of(c).tokens;
          if (tokens <= routing::kMaxTokens) return "fused";
          return fmt::format("fallback: chain2 ({} tokens, at most {} fused)", tokens,
                             routing::kMaxTokens);
        },
});

}  // namespace
}  // namespace moegate
