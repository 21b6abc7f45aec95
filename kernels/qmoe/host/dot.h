// SPDX-License-Identifier: Apache-2.0
// What the host variants share: widening the activations, dot products of a panel of rows and
// columns on the best instruction set present, and what follows a dot product. The variants differ
// in how they cut the work into panels.
#pragma once

#include <span>

#include "kernels/host/isa.h"
#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe::host {

/// Columns of one unit of parallel work; gate and up columns stay together.
constexpr int kPanelColumns = 32;

/// Rows of one expert times neighbouring columns of it, over a range of K.
struct Panel {
  int first_row, rows;
  int first_column, columns;
  int first_byte, end_byte;  // of every column's codes; begins where a group of a scale factor does
};

/// Panel of all of K.
Panel panel_of(const QmoeShape& shape, int first_row, int rows, int first_column);

/// The launch's input and its activations as floats: per row of x the even k, then the odd k, so
/// that low and high nibbles meet their factors in order. Each half is padded to whole vectors.
struct Operands {
  QmoeArgs args;
  float* x;  // [source_rows, 2, half_pitch(shape)]
};

int half_pitch(const QmoeShape& shape);
size_t widened_bytes(const QmoeShape& shape);

/// The inner loops on one instruction set.
struct Isa {
  const char* name;
  bool (*present)();  // null: always
  /// Row `row` of x.
  void (*widen)(const Operands& operands, int row);
  /// Dot products [panel.rows, panel.columns], scale factors applied.
  void (*multiply)(const Operands& operands, const Panel& panel, float* sums);
};

/// Those that this processor has, best first.
std::span<const Isa* const> isas();
inline const Isa& best_isa() {
  return *isas().front();
}

/// Widens all of x; called by every thread of a parallel region, ends with a barrier.
void widen(const Isa& isa, const Operands& operands);
/// Bias, SwiGLU and rounding of a panel's dot products [panel.rows, panel.columns].
void finish(const QmoeArgs& args, const Panel& panel, const float* sums);

/// The rows of one expert together: cuts the rows into runs of one expert, of at most kMaxRows;
/// `starts` [R + 1] gets where each begins, and R behind the last. Returns how many there are.
constexpr int kMaxRows = 16;
int find_runs(const QmoeArgs& args, int32_t* starts);
/// multiply() and finish() of the run that begins at *start and a panel of columns.
void multiply_run(const Isa& isa, const Operands& operands, const int32_t* start, int column);

/// The variant `single`, on which others fall back; needs widened_bytes() at operands.x.
void launch_single(const Isa& isa, const Operands& operands);

extern const Isa kPortable, kAvx2, kAvx512;

inline std::string isa_path(const Case&, const DeviceFacts&) {
  return best_isa().name;
}

/// A variant of both operators that takes every case; its path is its instruction set.
template <class P>
KernelSpec<P> spec(const std::string& name, const std::string& help,
                   void (*launch)(P&, const Launch&),
                   size_t (*workspace)(const Case&, const DeviceFacts&)) {
  return {.name = name,
          .backend = Backend::host,
          .help = help,
          .launch = launch,
          .workspace = workspace,
          .path = isa_path};
}

}  // namespace moegate::qmoe::host
