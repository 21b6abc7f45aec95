// SPDX-License-Identifier: Apache-2.0
// The int4 products on the CPU by expert: all rows of an expert meet a block of its columns
// together, so that each byte of codes is read and decoded once for up to four of them.
//
// Measured cold against `single` on 2 threads of an AMD EPYC (AVX-512, other programs running, 3
// processes): at T = 8, E = 32, k = 4, H = I = 704 0.82 to 0.83 (blocks of 32) and 0.89 (one scale
// factor per column) of its time, fc1 and fc2 alike; at E = 256, k = 8, H = 512, I = 128, where few
// rows share an expert, 0.96 to 0.98. At T = 1 no rows share one and the work is the same: 1.00
// to 1.02. Codes must be read in long stretches: before they were prefetched, the loops over
// columns and experts exchanged made it lose by 1.14 to 1.89.
#include "kernels/qmoe/host/dot.h"

namespace moegate::qmoe::host {
namespace {

/// Widened activations, then where runs of rows start, one more than there are runs.
template <class P>
size_t workspace(const Case& c, const DeviceFacts&) {
  const QmoeShape shape = P::shape_of(c);
  return widened_bytes(shape) + sizeof(int32_t) * (static_cast<size_t>(shape.rows()) + 1);
}

template <class P>
void launch(P& problem, const Launch&) {
  const Operands operands = {problem.args(), problem.template workspace<float>()};
  const QmoeShape& shape = operands.args.shape;
  auto* starts = reinterpret_cast<int32_t*>(operands.x + widened_bytes(shape) / sizeof(float));
  const int runs = find_runs(operands.args, starts);
  const Isa& isa = best_isa();
#pragma omp parallel
  {
    widen(isa, operands);
#pragma omp for schedule(static) collapse(2)
    for (int run = 0; run < runs; ++run) {
      for (int column = 0; column < shape.n; column += kPanelColumns) {
        multiply_run(isa, operands, starts + run, column);
      }
    }
  }
}

constexpr const char* kHelp =
    "the rows of an expert together: codes are read and decoded once for all";

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>("expert_rows", kHelp, launch, workspace<QmoeFc1>));
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>("expert_rows", kHelp, launch, workspace<QmoeFc2>));

}  // namespace
}  // namespace moegate::qmoe::host
