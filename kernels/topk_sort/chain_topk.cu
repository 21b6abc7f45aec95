// SPDX-License-Identifier: Apache-2.0
// First step of the chains: a warp selects a token's experts and writes their ids and weights to
// global memory. Several tokens per block, as in vLLM's topkGatingSoftmax.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/select_topk.cuh"

namespace moegate::topk_sort {
namespace {

using namespace cuda;

constexpr int kWarps = 4;  // tokens per block: small, so that few tokens still spread over the SMs

template <int N, bool Grouped>
__global__ void __launch_bounds__(kWarps* kWarp)
    topk_kernel(const __grid_constant__ TopkSortArgs args, int32_t* ids, float* weights) {
  __shared__ uint64_t slots[kWarps][kMaxTopk];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int token = blockIdx.x * kWarps + warp;
  if (token >= args.shape.tokens) return;
  const RawRow<N> raw = load_row<N>(args, token, lane);
  const LaneBias<N> bias = load_bias<Grouped, N>(args, lane);
  const Chosen chosen = select_topk<Grouped>(raw, bias, args.shape, slots[warp]);
  const float weight = weight_of<Grouped>(chosen, args, token);
  if (lane < args.shape.topk) {
    const int64_t pair = int64_t{token} * args.shape.topk + lane;
    ids[pair] = chosen.expert;
    weights[pair] = weight;
  }
}

}  // namespace

std::string warp_select_fault(const TopkSortShape& shape) {
  if (shape.experts > kMaxExperts) {
    return fmt::format("experts = {} exceeds {}, what a warp's registers hold", shape.experts,
                       kMaxExperts);
  }
  if (shape.groups > kWarp) {
    return fmt::format("groups = {} exceeds {}, one per lane", shape.groups, kWarp);
  }
  return "";
}

std::string warp_select_unsupported(const Case& c, const DeviceFacts&) {
  return warp_select_fault(TopkSortShape::of(c));
}

void launch_topk(const TopkSortArgs& args, const ChainBuffers& buffers, const Launch& where) {
  const int blocks = (args.shape.tokens + kWarps - 1) / kWarps;
  for_lanes(args.shape, [&]<int N, bool Grouped>() {
    topk_kernel<N, Grouped>
        <<<blocks, kWarps * kWarp, 0, stream_of(where)>>>(args, buffers.ids, buffers.weights);
  });
  check_launch("topk_kernel");
}

}  // namespace moegate::topk_sort
