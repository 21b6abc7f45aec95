// SPDX-License-Identifier: Apache-2.0
// dense_fc2 on the CPU in the structure of TensorRT-LLM before its PR 12686: a sum over each step
// of K (k_tile), which meets its alpha and joins the total before the next starts. The yardstick.
//
// Floor: all weights from memory, at 33.7 GB/s (`moegate doctor`). Measured cold with AVX-512 on 2
// threads of an AMD EPYC, 3 processes, E = 256, k = 8, I = 256: 29 and 15 GB/s at H = 128 and T = 1
// and 4. From some tokens on products are the limit: 149 GFLOP/s at H = 512, T = 16.
#include "kernels/dense_fc2/host/dense.h"

namespace moegate::dense_fc2::host {
namespace {

const Kernel<DenseFc2> kernel(spec<Rows::all, AlphaPer::k_tile>(
    "alpha_per_k_tile", "every step of K summed up apart and multiplied by alpha"));

}  // namespace
}  // namespace moegate::dense_fc2::host
