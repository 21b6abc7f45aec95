// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU as the Triton kernels did them before SGLang PR 10567: rows of x are
// gathered by sorted id, and every column looks up its own scale factor. The yardstick.
#include "kernels/moe_gemm/host_product.h"

namespace moegate {
namespace {

using namespace moe_gemm_host;

template <class P>
size_t workspace(const Case& c, const DeviceFacts&) {
  return widened_bytes(P::shape_of(c));
}

std::string path(const Case&, const DeviceFacts&) {
  return best_isa().name;
}

template <class P>
void launch(P& problem, const Launch&) {
  launch_gather({problem.args(), best_isa(), problem.template workspace<float>()});
}

template <class P>
KernelSpec<P> spec() {
  return {.name = "gather",
          .backend = Backend::host,
          .help = "rows gathered by sorted id, a scale factor per column",
          .launch = launch<P>,
          .workspace = workspace<P>,
          .path = path};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp>());
const Kernel<MoeDown> down(spec<MoeDown>());

}  // namespace
}  // namespace moegate
