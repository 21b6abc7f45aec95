// SPDX-License-Identifier: Apache-2.0
// silu_mul_quant in one launch and one pass: half a warp per group of 128 columns reads 16 bytes of
// gates and 16 of ups a lane, and the activations go from registers to codes without ever being
// memory. h is read as what is not needed again, so that L2 keeps q for the product that follows.
//
// Floor: h once from memory or L2, q to it; a resident SM has 64 KB of loads under way. At decode
// the launch and one round trip to memory. On an H200, I = 256, k = 8, cold: 1.8 us at T = 32, 4.2
// at 1024 (two_kernels: 3.5, 11.3).
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/silu_mul_quant/activate.cuh"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate::silu_mul_quant {
namespace {

using namespace cuda;

__global__ void __launch_bounds__(kThreads)
    fused_kernel(const __grid_constant__ SiluMulQuantArgs args) {
  activate(args);
}

}  // namespace

void launch_fused(const SiluMulQuantArgs& args, const Launch& where) {
  fused_kernel<<<blocks_for(args.shape), kThreads, 0, stream_of(where)>>>(args);
  check_launch("fused_kernel");
}

namespace {

const Kernel<SiluMulQuant> kernel({
    .name = "fused",
    .backend = Backend::cuda,
    .help = "one pass: half a warp per group, 16-byte loads, activations stay in registers",
    .launch = [](SiluMulQuant& problem,
                 const Launch& where) { launch_fused(problem.args(), where); },
});

}  // namespace
}  // namespace moegate::silu_mul_quant
