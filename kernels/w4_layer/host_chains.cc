// SPDX-License-Identifier: Apache-2.0
// The layer on the CPU as its parts, one after the other: counting_sort, both products by one
// variant, per_token. `gather` is the operator's yardstick.
#include <algorithm>

#include "kernels/moe_align/host_align.h"
#include "kernels/moe_sum/host_sum.h"
#include "kernels/w4_layer/w4_layer.h"
#include "kernels/w4_moe/host/product.h"

namespace moegate::w4_layer {
namespace {

using w4_moe::host::workspace_bytes;

template <auto kMultiply>
KernelSpec<W4Layer> chain(const char* name, const char* help) {
  return {.name = name,
          .backend = Backend::host,
          .help = help,
          .launch =
              [](W4Layer& problem, const Launch&) {
                const Steps steps = problem.steps();
                auto* x = reinterpret_cast<float*>(steps.end);
                moe_align::run_counting_sort(steps.align, steps.next);
                kMultiply({steps.gate_up, x});
                kMultiply({steps.down, x});
                moe_sum::run_per_token(steps.sum);
              },
          .workspace =
              [](const Case& c, const DeviceFacts&) {
                const auto shape = W4LayerShape::of(c);
                return W4Layer::workspace_bytes(shape) +
                       std::max(workspace_bytes(shape.gate_up), workspace_bytes(shape.down));
              },
          .path = w4_moe::host::isa_path};
}

const Kernel<W4Layer> gather(chain<w4_moe::host::launch_gather>(
    "gather", "counting sort, both products block by block, sum"));
const Kernel<W4Layer> expert_once(chain<w4_moe::host::launch_expert_once>(
    "expert_once", "counting sort, both products expert by expert, sum"));

}  // namespace
}  // namespace moegate::w4_layer
