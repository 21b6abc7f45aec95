// SPDX-License-Identifier: Apache-2.0
// The layer on the CPU as its parts, one after the other: selection, a counting sort, both products
// as `single`, the sum. The operator's yardstick.
//
// Floor: the weights of the experts that have rows at 33.7 GB/s (`moegate doctor`). Measured cold
// with AVX-512 on 2 threads of an AMD EPYC, other programs running, 3 processes, E = 32, k = 4, H =
// I = 384: 14.5 GB/s at T = 1, where each of five parallel regions has little to do; 12.8 at T = 8,
// where rows of one expert decode its weights again.
#include <algorithm>

#include "kernels/qmoe_layer/host_steps.h"

namespace moegate::qmoe_layer {
namespace {

using qmoe::host::best_isa;
using qmoe::host::widened_bytes;

/// Behind the layer's buffers the widened activations of one product at a time.
size_t widened_too(const Case& c, const DeviceFacts&) {
  const auto shape = QmoeLayerShape::of(c);
  return buffer_bytes(shape) + std::max(widened_bytes(shape.fc1), widened_bytes(shape.fc2));
}

void launch(QmoeLayer& problem, const Launch&) {
  const QmoeLayerArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.workspace());
  auto* widened = reinterpret_cast<float*>(buffers.end);
#pragma omp parallel if (args.shape.tokens() >= 8)
  select_experts(args, buffers);
  sort_rows(args, buffers);
  qmoe::host::launch_single(best_isa(), {fc1(args, buffers), widened});
  qmoe::host::launch_single(best_isa(), {fc2(args, buffers), widened});
#pragma omp parallel
  sum_rows(sum(args, buffers));
}

const Kernel<QmoeLayer> kernel({
    .name = "chain",
    .backend = Backend::host,
    .help = "selection, counting sort, both products row by row, sum",
    .launch = launch,
    .workspace = widened_too,
    .path = qmoe::host::isa_path,
});

}  // namespace
}  // namespace moegate::qmoe_layer
