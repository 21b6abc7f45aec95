// SPDX-License-Identifier: Apache-2.0
// dense_fc2 on the CPU in the structure of TensorRT-LLM PR 12686: an expert's whole part of K is
// one sum, which meets its alpha once.
//
// Measured against `alpha_per_k_tile` (same runs as stated there): 1.21, 1.22 (1.17 to 1.26) and
// 1.33 x its speed at T = 1, 4 and 16; at T = 1 weights come as fast as memory gives them, 34 GB/s.
// It adds up the lanes of a vector once per 256 of K instead of once per 128.
#include "kernels/dense_fc2/host/dense.h"

namespace moegate::dense_fc2::host {
namespace {

const Kernel<DenseFc2> kernel(spec<Rows::all, AlphaPer::expert>(
    "alpha_per_expert", "one sum and one alpha per expert (TensorRT-LLM PR 12686)"));

}  // namespace
}  // namespace moegate::dense_fc2::host
