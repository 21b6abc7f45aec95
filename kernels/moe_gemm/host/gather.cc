// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU as the Triton kernels did them before SGLang PR 10567: rows of x are
// gathered by sorted id, and every column looks up its own scale factor. The yardstick.
//
// Floor: the active experts' weights from memory, at 33.7 GB/s (`moegate doctor`). Measured cold
// with AVX-512 on 2 threads of an AMD EPYC, other programs running (all samples noisy), 3
// processes: 35 to 37 GB/s in gate_up at H = 512, I = 128, E = 256, k = 8, T = 1 and 16; 34 to 36
// in down at H = 512, I = 256, E = 128.
#include "kernels/moe_gemm/host/kernel.h"

namespace moegate::moe_gemm::host {
namespace {

void launch(const MoeGemmArgs& args, void* workspace, const Launch&) {
  launch_panels({args, best_isa(), static_cast<float*>(workspace)});
}

const HostKernel<launch, widened_bytes> kernel(
    "gather", "rows gathered by sorted id, a scale factor per column");

}  // namespace
}  // namespace moegate::moe_gemm::host
