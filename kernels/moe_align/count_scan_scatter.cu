// SPDX-License-Identifier: Apache-2.0
// moe_align in two launches, the public kernels for the general case. The first has two blocks: one
// counts all rows in shared memory, adds up the groups and names the experts of their blocks, the
// other fills the output with padding. The second gives every row a thread, which takes the next
// place of its group from a counter in global memory; so the order inside a group is by chance.
//
// Measured on an H200, cold, in a graph, E = 256, k = 8, BM = 64, us for T = 1, 64, 512, 4096,
// 16384: 3.99 4.48 5.45 17.0 56.7. One block counts all rows: from T = 1024 on that is nearly all.
#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_align/padding.cuh"

namespace moegate::moe_align {
namespace {

using namespace cuda;

constexpr int kCountThreads = 1024;  // at least one per expert
constexpr int kScatterThreads = 256;

/// `next` [E]: where the next row of each expert goes.
__global__ void __launch_bounds__(kCountThreads)
    count_scan_kernel(const __grid_constant__ MoeAlignArgs args, int32_t* next) {
  const MoeAlignShape& shape = args.shape;
  const int expert = threadIdx.x;
  if (blockIdx.x == 1) {
    fill_with_padding(args, threadIdx.x, kCountThreads);
    return;
  }
  __shared__ int32_t rows_of[kCountThreads], sums[kWarp], blocks_in_all;
  rows_of[expert] = 0;
  __syncthreads();
  for (int row = threadIdx.x; row < shape.rows(); row += kCountThreads)
    if (const int32_t id = args.topk_ids[row]; shape.has(id)) atomicAdd(&rows_of[id], 1);
  __syncthreads();
  const int blocks = blocks_for(shape, rows_of[expert]);
  const int through = scan_block(blocks, sums), first = through - blocks;
  if (expert < shape.experts) {
    next[expert] = first * shape.block;
    for (int b = first; b < through; ++b) args.expert_ids[b] = expert;
  }
  if (expert == kCountThreads - 1) {
    blocks_in_all = through;
    *args.num_tokens_post_padded = through * shape.block;
  }
  __syncthreads();
  clear_blocks(args, blocks_in_all, threadIdx.x, kCountThreads);
}

__global__ void __launch_bounds__(kScatterThreads)
    scatter_kernel(const __grid_constant__ MoeAlignArgs args, int32_t* next) {
  const int row = blockIdx.x * kScatterThreads + threadIdx.x;
  if (row >= args.shape.rows()) return;
  const int32_t id = args.topk_ids[row];
  if (args.shape.has(id)) args.sorted_token_ids[atomicAdd(&next[id], 1)] = row;
}

size_t workspace(const Case& c, const DeviceFacts&) {
  return static_cast<size_t>(MoeAlignShape::of(c).experts) * sizeof(int32_t);
}

}  // namespace

void launch_count_scan_scatter(const MoeAlignArgs& args, int32_t* next, const Launch& where) {
  const auto stream = stream_of(where);
  count_scan_kernel<<<2, kCountThreads, 0, stream>>>(args, next);
  check_launch("count_scan_kernel");
  const int blocks = (args.shape.rows() + kScatterThreads - 1) / kScatterThreads;
  scatter_kernel<<<blocks, kScatterThreads, 0, stream>>>(args, next);
  check_launch("scatter_kernel");
}

namespace {

const Kernel<MoeAlign> kernel({
    .name = "count_scan_scatter",
    .backend = Backend::cuda,
    .help = "two launches: one block counts, one fills; then atomics place the rows in any order",
    .launch =
        [](MoeAlign& problem, const Launch& where) {
          launch_count_scan_scatter(problem.args(), problem.workspace<int32_t>(), where);
        },
    .workspace = workspace,
});

}  // namespace
}  // namespace moegate::moe_align
