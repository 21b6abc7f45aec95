// SPDX-License-Identifier: Apache-2.0
// dense_fc2 on the CPU in the structure of TensorRT-LLM PR 12686: an expert's whole part of K is
// one sum, which meets its alpha once.
#include "kernels/dense_fc2/host_dense.h"

namespace moegate {
namespace {

using namespace dense_fc2_host;

const Kernel<DenseFc2> kernel(spec<Rows::all, AlphaPer::expert>(
    "alpha_per_expert", "one sum and one alpha per expert (TensorRT-LLM PR 12686)"));

}  // namespace
}  // namespace moegate
