// SPDX-License-Identifier: Apache-2.0
// The layer on the CPU in one parallel region, both products by expert as qmoe's `expert_rows`: the
// rows of an expert are cut into runs once, and every byte of codes is read and decoded once for up
// to four of them.
//
// Measured as `chain`, in its time: 0.86 (0.86 to 0.87) at T = 8; 0.97 (0.93 to 1.01) at T = 1,
// where no rows share an expert and one region in place of five is all there is to gain.
#include <algorithm>

#include "kernels/qmoe_layer/host_steps.h"

namespace moegate::qmoe_layer {
namespace {

using namespace qmoe::host;

/// One more than there can be, in whole vectors, so that what follows is aligned.
size_t whole_starts(const QmoeLayerShape& shape) {
  return (static_cast<size_t>(shape.rows()) + 16) / 16 * 16;
}

/// Behind the layer's buffers where runs of rows start, then the widened activations of one product
/// at a time.
size_t runs_and_widened(const Case& c, const DeviceFacts&) {
  const auto shape = QmoeLayerShape::of(c);
  return buffer_bytes(shape) + whole_starts(shape) * sizeof(int32_t) +
         std::max(widened_bytes(shape.fc1), widened_bytes(shape.fc2));
}

/// Of a parallel region.
void multiply(const Operands& operands, const int32_t* starts, int runs) {
  const Isa& isa = best_isa();
  widen(isa, operands);
#pragma omp for schedule(static) collapse(2)
  for (int run = 0; run < runs; ++run) {
    for (int column = 0; column < operands.args.shape.n; column += kPanelColumns) {
      multiply_run(isa, operands, starts + run, column);
    }
  }
}

void launch(QmoeLayer& problem, const Launch&) {
  const QmoeLayerArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.workspace());
  auto* starts = reinterpret_cast<int32_t*>(buffers.end);
  auto* widened = reinterpret_cast<float*>(starts + whole_starts(args.shape));
  const Operands first{fc1(args, buffers), widened}, second{fc2(args, buffers), widened};
  int runs = 0;
#pragma omp parallel
  {
    select_experts(args, buffers);
#pragma omp single
    {
      sort_rows(args, buffers);
      runs = find_runs(first.args, starts);
    }
    multiply(first, starts, runs);
    multiply(second, starts, runs);
    sum_rows(sum(args, buffers));
  }
}

const Kernel<QmoeLayer> kernel({
    .name = "expert_rows",
    .backend = Backend::host,
    .help = "one parallel region; in both products the rows of an expert together",
    .launch = launch,
    .workspace = runs_and_widened,
    .path = isa_path,
});

}  // namespace
}  // namespace moegate::qmoe_layer
