// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (TMA)
// A decode step's whole layer in one launch of one block per SM. Every block sorts the routed rows
// by expert for itself. Then two of its warps stream the block's share of the weights by TMA into
// a ring in shared memory, of gate-up and of down without a break: which ones follows from the
// routing alone. So memory works on while the other warps finish gate-up, wait for the grid's
// barrier, and quantise all activations, again every block for itself.
//
// Operand a of mma.sync are 16 rows of weights: 8 gates with the 8 ups of the same columns, so that
// the activation follows in the warp that adds up K; or 16 columns of the output of an expert.
// Operand b are up to eight rows of an expert. Both are widened to fp16 (gather/fragments.cuh), and
// sums are scaled per group of 128 in fp32. A stage is one warp's work. The last warp to put sums
// of a panel or a strip into shared memory adds them up, in the order of K. A block has all experts
// of its columns of the output: the sum over a token's rows needs no second barrier, and a row's
// bits do not depend on the batch. An expert with more than eight rows is read again for each
// eight. A cooperative launch sees to it that all blocks run at once.
//
// Floor: the weights of the experts that have rows, once, behind two round trips to memory (ids,
// the first weights). On an H100 (e72a34ec), us at 1, 2, 4 and 8 tokens, chain_tuned in brackets:
// DeepSeek-R1 TP8 22.6, 38.3, 66.3, 119 (28.5, 44.7, 70.0, 121), Qwen3-30B 20.8, 33.7, 58.4, 98.3
// (25.7, 37.8, 61.4, 95.1). Gate-up streams 3.1 TB/s, whatever the form of the copies. At eight
// tokens of DeepSeek-R1 the slowest block comes to the barrier 7 us after the mean, and
// quantisation takes 3 (7 of Qwen3-30B's, which loses by that). At one, all weights are there at
// 17; 4 us of down's products follow, bound by their instructions.
#include <algorithm>

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
    init_barrier(&shared.full[i], 1);
    init_barrier(&shared.empty[i], 1);
  }
  init_barriers<1>(0, &shared.rows_full, 1);
  init_barriers<1>(1, &shared.listed, 1);
  if (threadIdx.x < kMostSets) shared.arrived[threadIdx.x] = shared.left[threadIdx.x] = 0;
  fence_barrier_init();
}

__global__ void __launch_bounds__(kThreads, 1)
    one_launch_kernel(const __grid_constant__ CUtensorMap up,
                      const __grid_constant__ CUtensorMap down,
                      const __grid_constant__ CUtensorMap down_half,
                      const __grid_constant__ Work work) {
  extern __shared__ __align__(1024) uint8_t raw[];
  const Memory m(raw, work.plan);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const FusedMoeShape& shape = work.args.shape;
  int32_t experts[kRowsPerLane];
#pragma unroll
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int row = lane + 32 * i;
    experts[i] = row < shape.rows() ? __ldg(work.args.topk_ids + row) : kNoExpert;
  }
  if (warp == kWarps) {
    if (lane == 0) prefetch_map(&up);
    if (lane == 1) prefetch_map(&down);
    if (lane == 2) prefetch_map(&down_half);
  }
  prepare(m.shared, work.plan.stages);
  sort_rows(experts, shape, m.shared.octets);
  __syncthreads();
  if (warp >= kWarps) {
    produce({&up, &down, &down_half}, work, m, warp - kWarps);
  } else {
    consume(work, m, &barrier_arrivals);
  }
}

/// Of bytes, the first dimension that of a group, with the 128-byte swizzle; `stride` and `box`
/// without it. Beyond the edges are zeros.
template <int kRank>
CUtensorMap weights_map(const void* data, const cuuint64_t (&size)[kRank],
                        const cuuint64_t (&stride)[kRank - 1], const cuuint32_t (&box)[kRank]) {
  static const auto encode = encode_tensor_map();
  cuuint32_t step[kRank];
  std::fill_n(step, kRank, 1);
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, kRank, const_cast<void*>(data), size, stride, box,
             step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  throw Error(Exit::internal, fmt::format("tensor map of {} dimensions of weights: CUDA error {}",
                                          kRank, static_cast<int>(status)));
}

/// Boxes of gate-up: [gates, ups][kStageGroups groups][eight rows], of experts' [2, I, H].
CUtensorMap up_map(const FusedMoeArgs& args) {
  const FusedMoeShape& s = args.shape;
  const auto inter = static_cast<cuuint64_t>(s.inter), hidden = static_cast<cuuint64_t>(s.hidden);
  return weights_map<5>(
      args.w1, {kMoeGroup, inter, hidden / kMoeGroup, 2, static_cast<cuuint64_t>(s.experts)},
      {hidden, kMoeGroup, inter * hidden, 2 * inter * hidden},
      {kMoeGroup, kOctet, kStageGroups, 2, 1});
}

/// Boxes of down: [units of eight rows][kStageGroups groups][eight rows], of all experts' [H, I].
CUtensorMap down_map(const FusedMoeArgs& args, int units) {
  const FusedMoeShape& s = args.shape;
  const auto inter = static_cast<cuuint64_t>(s.inter);
  return weights_map<4>(
      args.w2,
      {kMoeGroup, kOctet, inter / kMoeGroup,
       static_cast<cuuint64_t>(s.experts) * static_cast<cuuint64_t>(s.hidden / kOctet)},
      {inter, kMoeGroup, kOctet * inter},
      {kMoeGroup, kOctet, kStageGroups, static_cast<cuuint32_t>(units)});
}

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const FusedMoeShape& s = args.shape;
  const Work work{args, problem.workspace<float>(),
                  make_plan(s, where.device.processors, where.device.shared_per_block)};
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
  check_cuda(cudaLaunchKernelEx(&config, one_launch_kernel, up_map(args), down_map(args, 2),
                                down_map(args, 1), work),
             "one_launch_kernel");
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const FusedMoeShape s = FusedMoeShape::of(c);
  if (!ExpertRank::of(c).is_whole()) {
    return "rank = " + c.get("rank") + ": it deals out the rows of all experts";
  }
  if (FusedMoe::input_of(c) == DType::bf16) {
    return "input = bf16: reads x in e4m3; take a chain, which quantises it first";
  }
  if (s.rows() > kMostRows) {
    return fmt::format("takes up to {} routed rows, not {}", kMostRows, s.rows());
  }
  const int stages = make_plan(s, device.processors, device.shared_per_block).stages;
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
      const Plan plan = make_plan(FusedMoeShape::of(c), device.processors, device.shared_per_block);
      return fmt::format("{} stages, {} strips at once", plan.stages, plan.strips_at_once);
    },
    .tolerance = FusedMoe::kOtherSums,
    .between = FusedMoe::kSumsRounded,
});

}  // namespace
}  // namespace moegate::fused_moe::one_launch
