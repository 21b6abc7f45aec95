// SPDX-License-Identifier: Apache-2.0
// topk_sort in one launch: block 0 routes with a warp per token, its logits in registers, and sorts
// through bit masks in shared memory; the other blocks, one per SM, zero moe_buf meanwhile.
//
// Measured on an H200, cold L2, in a graph; span in us for T = 1, 8, 32, 64 (E256: k 8, H 7168,
// softmax, bf16; E128: k 4, H 2880, topk_softmax, bf16):
//   E256  6.37 7.94 8.99 13.98   E128  5.89 5.09 5.63 8.06
// Floor: launch 0.7, cold load 0.7, one token's selection 1.1, stores 0.5: about 3. One SM is the
// limit: it issues every selection (64 tokens = 16 per scheduler, about 350 instructions each) and
// writes every padded row. At 64 tokens chain3, which selects on 16 SMs, is faster (9.95, 7.58).
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/place_rows.cuh"
#include "kernels/topk_sort/select_topk.cuh"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate::topk_sort {
namespace {

using namespace cuda;

constexpr int kMaxTokens = 128;  // there one SM already takes twice as long as the chain

/// 16 scores per lane, or 8 with their bias, leave registers for 512 threads only.
template <int N, bool Grouped>
constexpr int kMaxThreads = N < (Grouped ? 8 : 16) ? 1024 : 512;

struct Pair {
  int32_t expert;
  float weight;
};

template <int N, bool Grouped>
__global__ void __launch_bounds__(kMaxThreads<N, Grouped>, 1)
    warp_per_token_kernel(const __grid_constant__ TopkSortArgs args, int words) {
  if (blockIdx.x != 0) {
    zero_moe_buf(args, int64_t{blockIdx.x - 1} * blockDim.x + threadIdx.x,
                 int64_t{gridDim.x - 1} * blockDim.x);
    return;
  }
  extern __shared__ uint4 shared[];
  __shared__ uint64_t slots[kMaxThreads<N, Grouped> / kWarp][kMaxTopk];
  const TopkSortShape& shape = args.shape;
  const int k = shape.topk, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const PlaceTables tables = place_tables(shared, shape.experts, words);
  Pair* pairs = reinterpret_cast<Pair*>(shared + place_bytes(shape.experts, words) / 16);

  RawRow<N> next = load_row<N>(args, min(warp, shape.tokens - 1), lane);
  const LaneBias<N> bias = load_bias<Grouped, N>(args, lane);
  clear_marks(tables);
  __syncthreads();
  for (int token = warp; token < shape.tokens; token += warps) {
    const RawRow<N> raw = next;
    if (token + warps < shape.tokens) next = load_row<N>(args, token + warps, lane);
    const Chosen chosen = select_topk<Grouped>(raw, bias, shape, slots[warp]);
    const float weight = weight_of<Grouped>(chosen, args, token);
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
  for (int token = warp; token < shape.tokens; token += warps) {
    if (lane >= k) break;  // each lane placed its own pairs in shared memory
    const Pair pair = pairs[token * k + lane];
    write_row(args, row_of(tables, token, pair.expert), token, lane, pair.weight);
  }
  for (int e = warp; e < shape.experts; e += warps) pad_expert(tables, args, e);
}

template <int N, bool Grouped>
void launch_lanes(const TopkSortArgs& args, const Launch& where) {
  const TopkSortShape& shape = args.shape;
  const int words = (shape.tokens + 31) / 32;
  const size_t shared =
      place_bytes(shape.experts, words) + size_t(shape.tokens) * shape.topk * sizeof(Pair);
  const auto kernel = warp_per_token_kernel<N, Grouped>;
  allow_shared(kernel, shared);
  const int wanted = std::max((shape.experts + kWarp - 1) / kWarp, shape.tokens) * kWarp;
  const int blocks = std::max(where.device.processors, 2);
  kernel<<<blocks, std::min(wanted, kMaxThreads<N, Grouped>), shared, stream_of(where)>>>(args,
                                                                                          words);
  check_launch("warp_per_token_kernel");
}

}  // namespace

void launch_fused_warp_per_token(const TopkSortArgs& args, void* workspace, const Launch& where) {
  if (args.shape.tokens > kMaxTokens) return launch_chain2(args, workspace, where);
  for_lanes(args.shape, [&]<int N, bool Grouped>() { launch_lanes<N, Grouped>(args, where); });
}

namespace {

const Kernel<TopkSort> kernel({
    .name = "fused_warp_per_token",
    .backend = Backend::cuda,
    .help = "one launch: block 0 routes with a warp per token and sorts by bit masks, others zero",
    .launch = launch_variant<launch_fused_warp_per_token>,
    .workspace = [](const Case& c, const DeviceFacts&) { return workspace_beyond(c, kMaxTokens); },
    .unsupported = warp_select_unsupported,
    .path = [](const Case& c, const DeviceFacts&) { return path_up_to(c, kMaxTokens); },
});

}  // namespace
}  // namespace moegate::topk_sort
