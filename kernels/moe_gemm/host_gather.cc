// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU as the Triton kernels did them before SGLang PR 10567: rows of x are
// gathered by sorted id, and every column looks up its own scale factor. The yardstick.
//
// Floor: the active experts' weights from memory, at 33.7 GB/s (`moegate doctor`). Measured cold
// with AVX-512 on 2 threads of an AMD EPYC, other programs running (all samples noisy), 3
// processes: 35 to 37 GB/s in gate_up at H = 512, I = 128, E = 256, k = 8, T = 1 and 16; 34 to 36
// in down at H = 512, I = 256, E = 128.
#include "kernels/moe_gemm/host_product.h"
#include "kernels/moe_gemm/tile.h"

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

const TileRegistration tiles(
    {.name = "gather",
     .backend = Backend::host,
     .launch =
         [](const MoeGemmArgs& args, const Knobs&, void* workspace, const Launch&) {
           launch_gather({args, best_isa(), static_cast<float*>(workspace)});
         },
     .workspace = widened_bytes});

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
