// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (starts early)
// fused in the middle of a chain. What comes behind it may start before what comes ahead has ended,
// and must not read more of it than the aligned rows, which are older.
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/silu_mul_quant/activate.cuh"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate::silu_mul_quant {
namespace {

using namespace cuda;

__global__ void __launch_bounds__(kThreads)
    early_fused_kernel(const __grid_constant__ SiluMulQuantArgs args) {
  allow_dependents();
  wait_for_dependency();
  activate(args);
}

}  // namespace

void launch_fused_early(const SiluMulQuantArgs& args, const Launch& where) {
  launch_dependent(early_fused_kernel, static_cast<unsigned>(blocks_for(args.shape)), kThreads,
                   where.stream, args);
}

}  // namespace moegate::silu_mul_quant
