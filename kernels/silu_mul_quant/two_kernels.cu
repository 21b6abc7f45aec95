// SPDX-License-Identifier: Apache-2.0
// silu_mul_quant as the public fused-MoE layers run it: silu_and_mul writes activations in bf16, a
// second kernel reads them back and quantises each group of 128. The first has a block per row and
// reads an element at a time, the second half a warp per group and 16 bytes at a time.
//
// The product is rounded to bf16 once; vLLM's silu_and_mul rounds silu(gate), too. Accuracy as of
// the host's two_passes.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/silu_mul_quant/launches.h"
#include "kernels/silu_mul_quant/quantise.cuh"

namespace moegate::silu_mul_quant {
namespace {

using namespace cuda;

constexpr int kMaxThreads = 1024;

__global__ void __launch_bounds__(kMaxThreads)
    silu_and_mul_kernel(const __grid_constant__ SiluMulQuantArgs args, uint16_t* act) {
  const int inter = args.shape.inter;
  const uint16_t* gate = args.h + int64_t{blockIdx.x} * 2 * inter;
  uint16_t* to = act + int64_t{blockIdx.x} * inter;
  for (int i = threadIdx.x; i < inter; i += blockDim.x) {
    const float x = bf16_to_float(__ldg(gate + i)), up = bf16_to_float(__ldg(gate + inter + i));
    to[i] = float_to_bf16(x / (1 + expf(-x)) * up);
  }
}

__global__ void __launch_bounds__(kThreads)
    group_quant_kernel(const __grid_constant__ SiluMulQuantArgs args, const uint16_t* act) {
  const GroupPlace place(args.shape);
  if (!place.there) return;
  float a[kPerLane];
  widen(*reinterpret_cast<const uint4*>(act + place.element()), a);
  quantise(args, place, a);
}

}  // namespace

void launch_two_kernels(const SiluMulQuantArgs& args, uint16_t* act, const Launch& where) {
  silu_and_mul_kernel<<<args.shape.rows, std::min(args.shape.inter, kMaxThreads), 0,
                        stream_of(where)>>>(args, act);
  check_launch("silu_and_mul_kernel");
  launch_group_quant(args, act, where);
}

void launch_group_quant(const SiluMulQuantArgs& args, const uint16_t* act, const Launch& where) {
  group_quant_kernel<<<blocks_for(args.shape), kThreads, 0, stream_of(where)>>>(args, act);
  check_launch("group_quant_kernel");
}

namespace {

size_t workspace(const Case& c, const DeviceFacts&) {
  const auto shape = SiluMulQuantShape::of(c);
  return sizeof(uint16_t) * static_cast<size_t>(shape.rows) * static_cast<size_t>(shape.inter);
}

const Kernel<SiluMulQuant> kernel({
    .name = "two_kernels",
    .backend = Backend::cuda,
    .help = "silu_and_mul to bf16, then per-token-group quantisation, as vLLM and SGLang",
    .launch =
        [](SiluMulQuant& problem, const Launch& where) {
          launch_two_kernels(problem.args(), problem.workspace<uint16_t>(), where);
        },
    .workspace = workspace,
    .tolerance = SiluMulQuant::kRoundedToBf16,
    .between = SiluMulQuant::kTwiceRounded,
});

}  // namespace
}  // namespace moegate::silu_mul_quant
