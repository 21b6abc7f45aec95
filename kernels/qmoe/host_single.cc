// SPDX-License-Identifier: Apache-2.0
// The int4 products on the CPU as the single-pass kernel does them: for every routed row and column
// one dot product over all of K, then bias and SwiGLU. The yardstick.
#include "kernels/qmoe/host_dot.h"

namespace moegate {
namespace {

template <class P>
size_t workspace(const Case& c, const DeviceFacts&) {
  return qmoe_host::widened_bytes(P::shape_of(c));
}

std::string path(const Case&, const DeviceFacts&) {
  return qmoe_host::best_isa().name;
}

template <class P>
void launch(P& problem, const Launch&) {
  qmoe_host::launch_single(qmoe_host::best_isa(),
                           {problem.args(), problem.template workspace<float>()});
}

template <class P>
KernelSpec<P> spec() {
  return {.name = "single",
          .backend = Backend::host,
          .help = "one pass over K per row and column",
          .launch = launch<P>,
          .workspace = workspace<P>,
          .path = path};
}

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>());
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>());

}  // namespace
}  // namespace moegate
