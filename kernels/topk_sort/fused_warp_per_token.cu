// SPDX-License-Identifier: Apache-2.0
// topk_sort in one launch: block 0 routes with a warp per token, its logits in registers, and sorts
// through bit masks in shared memory; the other blocks, one per SM, zero moe_buf meanwhile.
#include <algorithm>

#include "kernels/topk_sort/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/place_rows.cuh"
#include "kernels/topk_sort/select_topk.cuh"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate {
namespace routing {
namespace {

constexpr int kMaxTokens = 512;  // beyond, one SM's share of the work is too much by far

/// 16 scores per lane leave registers for 512 threads only.
template <int N>
constexpr int kMaxThreads = N < 16 ? 1024 : 512;

struct Pair {
  int32_t expert;
  float weight;
};

template <int N>
__global__ void __launch_bounds__(kMaxThreads<N>, 1)
    warp_per_token_kernel(const __grid_constant__ TopkSortArgs args, int words) {
  if (blockIdx.x != 0) {
    zero_moe_buf(args, int64_t{blockIdx.x - 1} * blockDim.x + threadIdx.x,
                 int64_t{gridDim.x - 1} * blockDim.x);
    return;
  }
  extern __shared__ uint4 shared[];
  __shared__ uint64_t slots[kMaxThreads<N> / kWarp][kMaxTopk];
  const TopkSortShape& shape = args.shape;
  const int k = shape.topk, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const PlaceTables tables = place_tables(shared, shape.experts, words);
  Pair* pairs = reinterpret_cast<Pair*>(shared + place_bytes(shape.experts, words) / 16);

  RawRow<N> next = load_row<N>(args, min(warp, shape.tokens - 1), lane);
  const LaneBias<N> bias = load_bias<N>(args, lane);
  clear_marks(tables);
  __syncthreads();
  for (int token = warp; token < shape.tokens; token += warps) {
    const RawRow<N> raw = next;
    if (token + warps < shape.tokens) next = load_row<N>(args, token + warps, lane);
    const Chosen chosen = select_topk(raw, bias, shape, slots[warp]);
    const float weight = weight_of(chosen, args, token);
    if (lane < k) {
      mark(tables, token, chosen.expert);
      pairs[token * k + lane] = {chosen.expert, weight};
    }
  }
  __syncthreads();

  const int expert = threadIdx.x;
  const int rows = expert < shape.experts ? count_rows(tables, expert) : 0;
  const int padded = begin_rows(tables, rows, 0, shape.unit);
  if (expert == shape.experts - 1) write_num_valid(args, padded);
  __syncthreads();
  for (int i = threadIdx.x; i < shape.tokens * k; i += blockDim.x) {
    const int token = i / k;
    write_row(args, row_of(tables, token, pairs[i].expert), token, i % k, pairs[i].weight);
  }
  for (int e = warp; e < shape.experts; e += warps) pad_expert(tables, args, e);
}

template <int N>
void launch_lanes(const TopkSortArgs& args, const Target& target) {
  const TopkSortShape& shape = args.shape;
  const int words = (shape.tokens + 31) / 32;
  const size_t shared = place_bytes(shape.experts, words) +
                        size_t(shape.tokens) * shape.topk * sizeof(Pair);
  allow_shared(warp_per_token_kernel<N>, shared);
  const int wanted = std::max((shape.experts + kWarp - 1) / kWarp, shape.tokens) * kWarp;
  warp_per_token_kernel<N><<<std::max(target.device.processors, 2),
                             std::min(wanted, kMaxThreads<N>), shared, target.stream>>>(args,
                                                                                        words);
  check_launch("warp_per_token_kernel");
}

}  // namespace

void launch_fused_warp_per_token(const TopkSortArgs& args, void* workspace, const Target& target) {
  if (args.shape.tokens > kMaxTokens) return launch_chain2(args, workspace, target);
  const int experts = args.shape.experts;
  if (experts <= 4 * kWarp) return launch_lanes<4>(args, target);
  if (experts <= 8 * kWarp) return launch_lanes<8>(args, target);
  launch_lanes<16>(args, target);
}

}  // namespace routing

namespace {

const Kernel<TopkSort> kernel({
    .name = "fused_warp_per_token",
    .backend = Backend::cuda,
    .help = "one launch: block 0 routes with a warp per token and sorts by bit masks, others zero",
    .launch =
        [](TopkSort& problem, const Launch& launch) {
          routing::launch_fused_warp_per_token(
              problem.args(), problem.workspace(),
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
