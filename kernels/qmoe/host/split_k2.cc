// SPDX-License-Identifier: Apache-2.0
// fc1 on the CPU in the structure of ONNX Runtime PR 29167: one pass computes two partial products,
// each over half of K, into fp32 scratch memory; a second adds them, then bias and SwiGLU.
//
// Loses to `single` everywhere it was measured (2 threads of an AMD EPYC, AVX-512, cold, 3
// processes): 1.37 to 1.57 x its time at H = I = 704, T = 8, 1.45 to 1.71 at T = 1, 1.55 to 1.85 at
// H = 512, I = 128; some samples were noisy. A CPU has no idle threads that a second
// half of K would occupy; what is left are twice as many dot products to start and end, codes read
// in pieces of half a column, cold scratch memory and a second parallel region. The pieces matter:
// at H = I = 704, T = 1, one process each, it was 2.18 and 2.54 x with one half of all columns
// after the other, 2.06 and 1.81 x with the halves of a panel side by side, and 1.55 and 1.75 x
// once codes were prefetched (blocks of 32, none).
#include "kernels/qmoe/host/dot.h"

namespace moegate::qmoe::host {
namespace {

constexpr int kSplits = 2;
constexpr int kStep = 32;  // elements of K, where a scale factor covers all of it

/// Elements of K in the first half, whole groups of a scale factor; all of K when it cannot be cut.
int first_half(const QmoeShape& shape) {
  const int step = shape.block < shape.k ? shape.block : kStep;
  const int steps = shape.k / step;
  return steps < kSplits ? shape.k : (steps + 1) / 2 * step;
}

/// Widened activations, then the partial products [2, R, N].
size_t workspace(const Case& c, const DeviceFacts&) {
  const QmoeShape shape = QmoeFc1::shape_of(c);
  return widened_bytes(shape) +
         sizeof(float) * kSplits * static_cast<size_t>(shape.rows()) * static_cast<size_t>(shape.n);
}

std::string path(const Case& c, const DeviceFacts&) {
  const QmoeShape shape = QmoeFc1::shape_of(c);
  const bool falls_back = first_half(shape) == shape.k;
  return std::string(falls_back ? "fallback: single, " : "") + best_isa().name;
}

/// The part of a panel's K that belongs to a split.
Panel half_of(const QmoeShape& shape, Panel panel, int split) {
  const int middle = first_half(shape) / 2;
  (split == 0 ? panel.end_byte : panel.first_byte) = middle;
  return panel;
}

void multiply_halves(const Isa& isa, const Operands& operands, float* partials) {
  const QmoeShape& shape = operands.args.shape;
#pragma omp parallel
  {
    widen(isa, operands);
#pragma omp for schedule(static) collapse(3)
    for (int row = 0; row < shape.rows(); ++row) {
      for (int column = 0; column < shape.n; column += kPanelColumns) {
        for (int split = 0; split < kSplits; ++split) {
          const Panel panel = half_of(shape, panel_of(shape, row, 1, column), split);
          isa.multiply(operands, panel,
                       partials + (int64_t{split} * shape.rows() + row) * shape.n + column);
        }
      }
    }
  }
}

void add_halves(const QmoeArgs& args, const float* partials) {
  const QmoeShape& shape = args.shape;
  const int64_t second = int64_t{shape.rows()} * shape.n;
#pragma omp parallel for schedule(static) collapse(2)
  for (int row = 0; row < shape.rows(); ++row) {
    for (int column = 0; column < shape.n; column += kPanelColumns) {
      const Panel panel = panel_of(shape, row, 1, column);
      const float* halves = partials + int64_t{row} * shape.n + column;
      float sums[kPanelColumns];
      for (int c = 0; c < panel.columns; ++c) sums[c] = halves[c] + halves[c + second];
      finish(args, panel, sums);
    }
  }
}

void launch(QmoeFc1& problem, const Launch&) {
  const Operands operands = {problem.args(), problem.workspace<float>()};
  const QmoeShape& shape = operands.args.shape;
  if (first_half(shape) == shape.k) return launch_single(best_isa(), operands);
  float* partials = operands.x + widened_bytes(shape) / sizeof(float);
  multiply_halves(best_isa(), operands, partials);
  add_halves(operands.args, partials);
}

const Kernel<QmoeFc1> kernel({.name = "split_k2",
                              .backend = Backend::host,
                              .help = "two partial products over half of K each, then their sum",
                              .launch = launch,
                              .workspace = workspace,
                              .path = path});

}  // namespace
}  // namespace moegate::qmoe::host
