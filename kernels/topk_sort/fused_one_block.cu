// SPDX-License-Identifier: Apache-2.0
// topk_sort as AITER PR 3526 does it, carried over to CUDA as it is: one launch of 256-thread
// blocks, one per SM. Block 0 routes with one thread per token and sorts with one thread per
// expert, all in shared memory; the other blocks zero moe_buf. Where its table does not fit, chain3
// runs instead.
//
// Measured on an H200, cold L2, in a graph; span in us for T = 1, 8, 32, 64 (E256: k 8, H 7168,
// softmax, bf16; E128: k 4, H 2880, topk_softmax, bf16):
//   E256  70.8 91.8 163 192      E128  28.1 35.0 59.2 65.7
// It loses to chain3 by 5 to 19 times here: already at T = 1 a lone thread walks E*(k+2) logits one
// after another, at about 50 cycles each (L1 latency, then a dependent compare). More tokens make
// it worse: the threads of a warp read different rows, so every load touches 32 cache lines.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/topk_sort/launches.h"
#include "kernels/topk_sort/strict_greater_select.h"
#include "kernels/topk_sort/zero_buffer.cuh"

namespace moegate::topk_sort {
namespace {

using namespace cuda;

constexpr int kThreads = 256;

/// The formula of the PR: a table of (T+1)(E+1) slots and T*k weights, 4 bytes each.
int64_t shared_bytes(const TopkSortShape& shape) {
  return 4 * (int64_t{shape.tokens + 1} * (shape.experts + 1) + int64_t{shape.tokens} * shape.topk);
}

template <DType D>
struct RowOfLogits {
  const void* logits;
  int64_t first;
  MOEGATE_HD float operator()(int expert) const {
    if constexpr (D == DType::f32) return static_cast<const float*>(logits)[first + expert];
    const uint16_t bits = static_cast<const uint16_t*>(logits)[first + expert];
    return D == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
  }
};

/// Thread 0: where each expert's padded rows begin, which experts the blocks of rows belong to.
__device__ void lay_out(const TopkSortArgs& args, int32_t* last_row) {
  const int unit = args.shape.unit, experts = args.shape.experts;
  int begin = 0;
  for (int e = 0; e < experts; ++e) {
    const int blocks = (last_row[e] + unit - 1) / unit;
    last_row[e] = begin;
    for (int b = 0; b < blocks; ++b) args.sorted_expert_ids[begin / unit + b] = e;
    begin += blocks * unit;
  }
  last_row[experts] = begin;
  args.num_valid[0] = begin;
  args.num_valid[1] = args.shape.tokens;
}

template <DType D>
__global__ void __launch_bounds__(kThreads)
    one_block_kernel(const __grid_constant__ TopkSortArgs args) {
  if (blockIdx.x != 0) {
    zero_moe_buf(args, int64_t{blockIdx.x - 1} * kThreads + threadIdx.x,
                 int64_t{gridDim.x - 1} * kThreads);
    return;
  }
  extern __shared__ int32_t table[];  // [T + 1][E + 1]: 1 + slot; the last row counts, then begins
  const TopkSortShape& shape = args.shape;
  const int tokens = shape.tokens, experts = shape.experts, k = shape.topk, stride = experts + 1;
  float* weights = reinterpret_cast<float*>(table + (tokens + 1) * stride);
  int32_t* last_row = table + tokens * stride;

  for (int i = threadIdx.x; i < (tokens + 1) * stride; i += kThreads) table[i] = 0;
  __syncthreads();
  const bool over_chosen = shape.renorm || shape.scoring == Scoring::topk_softmax;
  for (int t = threadIdx.x; t < tokens; t += kThreads)
    strict_greater_select(experts, k, over_chosen, shape.scale,
                          RowOfLogits<D>{args.logits, int64_t{t} * experts}, table + t * stride,
                          weights + t * k);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += kThreads) {
    int rows = 0;
    for (int t = 0; t < tokens; ++t) rows += table[t * stride + e] != 0;
    last_row[e] = rows;
  }
  __syncthreads();
  if (threadIdx.x == 0) lay_out(args, last_row);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += kThreads) {
    int row = last_row[e];
    for (int t = 0; t < tokens; ++t) {
      const int slot = table[t * stride + e] - 1;
      if (slot < 0) continue;
      args.sorted_ids[row] = slot << 24 | t;
      args.sorted_weights[row++] = weights[t * k + slot];
    }
    for (; row < last_row[e + 1]; ++row) {
      args.sorted_ids[row] = k << 24 | tokens;
      args.sorted_weights[row] = 0;
    }
  }
}

bool fits(const TopkSortShape& shape, const DeviceFacts& device) {
  return shared_bytes(shape) <= device.shared_per_block;
}

}  // namespace

void launch_fused_one_block(const TopkSortArgs& args, void* workspace, const Launch& where) {
  if (!fits(args.shape, where.device)) return launch_chain3(args, workspace, where);
  const auto shared = static_cast<size_t>(shared_bytes(args.shape));
  const auto kernel = args.shape.dtype == DType::f32   ? one_block_kernel<DType::f32>
                      : args.shape.dtype == DType::f16 ? one_block_kernel<DType::f16>
                                                       : one_block_kernel<DType::bf16>;
  allow_shared(kernel, shared);
  kernel<<<std::max(where.device.processors, 2), kThreads, shared, stream_of(where)>>>(args);
  check_launch("one_block_kernel");
}

namespace {

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const TopkSortShape shape = TopkSortShape::of(c);
  if (shape.scoring == Scoring::noaux_tc) return "noaux_tc: the PR has softmax only";
  if (!fits(shape, device)) return warp_select_unsupported(c, device);
  if (shape.data == LogitData::few_finite) {
    return "documented divergence: a row with fewer than k finite logits takes expert 0 again and "
           "again, and its later slot overwrites the earlier one";
  }
  if (shape.data == LogitData::nan) return "documented divergence: a NaN logit is never chosen";
  return "";
}

std::string path(const Case& c, const DeviceFacts& device) {
  const TopkSortShape shape = TopkSortShape::of(c);
  if (fits(shape, device)) return "fused";
  return fmt::format("fallback: chain3 (needs {} KiB shared memory, device has {})",
                     (shared_bytes(shape) + 1023) / 1024, device.shared_per_block / 1024);
}

const Kernel<TopkSort> kernel({
    .name = "fused_one_block",
    .backend = Backend::cuda,
    .help = "one launch as in AITER PR 3526: block 0 routes with a thread per token, others zero",
    .launch = launch_variant<launch_fused_one_block>,
    .workspace =
        [](const Case& c, const DeviceFacts& device) {
          const TopkSortShape shape = TopkSortShape::of(c);
          return fits(shape, device) ? 0 : chain_bytes(shape);
        },
    .unsupported = unsupported,
    .path = path,
});

}  // namespace
}  // namespace moegate::topk_sort
