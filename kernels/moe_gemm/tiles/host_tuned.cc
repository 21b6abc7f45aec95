// SPDX-License-Identifier: Apache-2.0
// Variant `tuned` (tuned.h) on the host.
#include "kernels/moe_gemm/tiles/tuned.h"

namespace moegate::moe_gemm::tiles {
namespace {

const Kernel<MoeGateUp> gate_up(tuned_spec<MoeGateUp>(Backend::host));
const Kernel<MoeDown> down(tuned_spec<MoeDown>(Backend::host));

}  // namespace
}  // namespace moegate::moe_gemm::tiles
