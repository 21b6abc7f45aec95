// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (TMA)
// A decode step's whole layer in one launch of one block per SM. Every block sorts the routed rows
// by expert for itself. Then two of its warps stream the block's share of the weights by TMA into
// a ring in shared memory, of gate-up and of down without a break: which ones follows from the
// routing alone. So memory works on while the other warps finish gate-up, wait for the grid's
// barrier, and quantise all activations, again every block for itself. At one token the ring holds
// all of a block's share of down.
//
// Operand a of mma.sync are 16 rows of weights: 8 gates with the 8 ups of the same columns, so that
// the activation follows in the warp that adds up K; or 16 columns of the output of an expert.
// Operand b are up to eight rows of an expert. Both are widened to fp16 (gather/fragments.cuh), and
// sums are scaled per group of 128 in fp32. A stage is one warp's work. The last warp to put sums
// of a panel or a strip into shared memory adds them up, in the order of K. A block has all experts
// of its columns of the output: the sum over a token's rows needs no second barrier, and a row's
// bits do not depend on the batch. An expert with more than eight rows is read again for each
// eight.
//
// Floor: the weights of the experts that have rows, once, behind two round trips to memory (ids,
// the first weights). A cooperative launch sees to it that all blocks run at once. The barrier's
// counter outlives the launch: it stands at a multiple of 2^31 after each.
//
// Measured on an H100, us at 1, 2, 4 and 8 tokens, behind it chain_tuned: DeepSeek-R1 TP8 24.5,
// 42.0, 72.5, 132 (28.4, 44.6, 69.7, 121); Qwen3-30B 21.9, 35.9, 60.6, 99 (25.5, 37.9, 61.1, 95).
// It streams 2.5 TB/s, the chain's products 2.8: warps wait for weights, 62 % of samples at 8.
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/fused_moe/one_launch/consume.cuh"
#include "kernels/fused_moe/one_launch/produce.cuh"

namespace moegate::fused_moe::one_launch {
namespace {

using namespace cuda;

constexpr int kThreads = kConsumers + 32 * kCopiers;

__device__ uint32_t barrier_arrivals;

/// By all warps, so that it takes no longer than the ids do.
__device__ void prepare(Shared& shared, int stages) {
#pragma unroll 1
  for (int i = threadIdx.x / 32; i < stages; i += kThreads / 32) {
    if (!elected()) continue;
    init_barrier(&shared.full[i], 1 + kStageScales);
    init_barrier(&shared.empty[i], 1);
  }
  init_barriers<1>(0, &shared.rows_full, 1);
  init_barriers<1>(1, &shared.listed, 1);
  if (threadIdx.x < kMostParts) shared.arrived[threadIdx.x] = shared.left[threadIdx.x] = 0;
  fence_barrier_init();
}

__global__ void __launch_bounds__(kThreads, 1)
    one_launch_kernel(const __grid_constant__ CUtensorMap up,
                      const __grid_constant__ CUtensorMap down, const __grid_constant__ Work work) {
  extern __shared__ __align__(1024) uint8_t raw[];
  const Memory m(raw, work.plan);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int32_t experts[kRowsPerLane];
  if (warp == kWarps) {
#pragma unroll
    for (int i = 0; i < kRowsPerLane; ++i) {
      const int row = lane + 32 * i;
      experts[i] = row < work.args.shape.rows() ? __ldg(work.args.topk_ids + row) : -1;
    }
    if (lane == 0) prefetch_map(&up);
    if (lane == 1) prefetch_map(&down);
    if (lane == 2) prefetch_to_l2(&barrier_arrivals);
  }
  prepare(m.shared, work.plan.stages);
  __syncthreads();
  if (warp >= kWarps) {
    produce(&up, &down, work, m, warp - kWarps, experts);
  } else {
    consume(work, m, &barrier_arrivals);
  }
}

/// Weights of all experts, [rows, k] bytes, in boxes of eight rows and kStageGroups groups of 128
/// along K, group by group with the 128-byte swizzle; beyond K are zeros.
CUtensorMap weights_map(const void* data, int64_t rows, int k) {
  static const auto encode = encode_tensor_map();
  const cuuint64_t size[] = {kMoeGroup, static_cast<cuuint64_t>(rows),
                             static_cast<cuuint64_t>(k / kMoeGroup)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(k), kMoeGroup};
  const cuuint32_t box[] = {kMoeGroup, kOctet, kStageGroups}, step[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<void*>(data), size, stride, box,
             step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  throw Error(Exit::internal, fmt::format("tensor map of [{}, {}] bytes in groups: CUDA error {}",
                                          rows, k, static_cast<int>(status)));
}

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const FusedMoeShape& s = args.shape;
  const Work work{args, problem.workspace<float>(), make_plan(s, where.device.shared_per_block)};
  const auto shared_bytes = static_cast<size_t>(work.plan.shared_bytes);
  allow_shared(one_launch_kernel, shared_bytes);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(where.device.processors);
  config.blockDim = kThreads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream_of(where);
  config.attrs = &attribute;
  config.numAttrs = kCooperative ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, one_launch_kernel,
                                weights_map(args.w1, int64_t{s.experts} * 2 * s.inter, s.hidden),
                                weights_map(args.w2, int64_t{s.experts} * s.hidden, s.inter), work),
             "one_launch_kernel");
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const FusedMoeShape s = FusedMoeShape::of(c);
  if (s.rows() > kMostRows) {
    return fmt::format("takes up to {} routed rows, not {}", kMostRows, s.rows());
  }
  const int stages = make_plan(s, device.shared_per_block).stages;
  if (stages >= kWarps) return {};
  return fmt::format("{} tokens of H = {} and I = {} leave shared memory for {} stages, of {}",
                     s.tokens, s.hidden, s.inter, stages, kWarps);
}

const Kernel<FusedMoe> kernel({
    .name = "one_launch",
    .backend = Backend::cuda,
    .help = "a block per SM streams its share of all weights, one grid barrier (up to 96 rows)",
    .launch = launch,
    .workspace =
        [](const Case& c, const DeviceFacts&) {
          const FusedMoeShape s = FusedMoeShape::of(c);
          return sizeof(float) * static_cast<size_t>(s.rows()) * static_cast<size_t>(s.inter);
        },
    .unsupported = unsupported,
    .path = [](const Case& c, const DeviceFacts& device) -> std::string {
      const Plan plan = make_plan(FusedMoeShape::of(c), device.shared_per_block);
      return fmt::format("{} stages, {} sets of sums", plan.stages, 1 << plan.log_parts);
    },
    .tolerance = FusedMoe::kOtherSums,
    .between = FusedMoe::kSumsRounded,
});

}  // namespace
}  // namespace moegate::fused_moe::one_launch
