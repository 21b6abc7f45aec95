// SPDX-License-Identifier: Apache-2.0
// What the host variants share: widening the activations, dot products of a panel of rows and
// columns on the best instruction set present, and what follows a dot product. The variants differ
// in where their rows lie, in how scale factors are applied, and in how K is cut.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/host/isa.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::host {

/// Columns of one unit of parallel work; divides 128, so that they share their scale factors.
constexpr int kPanelColumns = 32;
constexpr int kPanelRows = 16;  // at most, of one block

/// How the scale factors of a group of K reach a dot product: that of the row first, then that of
/// each column, looked up for each; or their product, formed once for all columns.
enum class Scaling { per_column, per_tile };

/// The groups of K that a panel takes: first, first + step, ...
struct Groups {
  int first = 0, step = 1;
};

/// Rows of one expert times neighbouring columns of it.
struct Panel {
  const float* x[kPanelRows];         // widened
  const float* x_scales[kPanelRows];  // [K/128]; null where they are not by block
  int32_t ids[kPanelRows];            // r: rows of the output
  int expert, rows, columns, first_column;
  const void* weights;         // [columns, K] of dtype
  int64_t weight_pitch;        // elements from one column to the next, K or more
  const float* weight_scales;  // of the expert: [ceil(N/128), K/128]; null likewise
  int k;
  DType dtype;
  Groups groups;
};

/// The inner loops on one instruction set.
struct Isa {
  const char* name;
  bool (*present)();  // null: always
  /// K elements of dtype to floats that `multiply` understands, of the same instruction set.
  void (*widen)(DType dtype, const void* from, int k, float* to);
  /// Dot products [panel.rows, panel.columns], scale factors of blocks applied.
  void (*multiply)(const Panel& panel, Scaling scaling, float* sums);
};

/// Those that this processor has, best first.
std::span<const Isa* const> isas();
inline const Isa& best_isa() {
  return *isas().front();
}

/// As KernelSpec::path.
inline std::string isa_path(const Case&, const DeviceFacts&) {
  return best_isa().name;
}

/// Floats of a widened row: K, rounded up to a whole vector.
int pitch(const MoeGemmShape& shape);

/// A launch's input and its activations as floats [rows, pitch]. Row r = t*k + j reads row
/// shape.source(r) of them, or, where they are sorted, the one at its place in sorted_token_ids.
struct Operands {
  const MoeGemmArgs& args;  // with_bias() reads beyond a copy
  const Isa& isa;
  float* x;
  bool sorted = false;
};
size_t widened_bytes(const MoeGemmShape& shape);

/// Widens all of x in token order; called by every thread of a parallel region, ends with a
/// barrier.
void widen_source_rows(const Operands& operands);

/// Rows in use of a block of BM; those of padding come last.
int rows_in_block(const MoeGemmArgs& args, int block);

/// The panel of `rows` rows from `first` of sorted_token_ids on, at the columns from
/// `first_column` on, over all of K.
Panel panel_at(const Operands& operands, int first, int rows, int first_column);

/// A panel's dot products [panel.rows, panel.columns], scale factors applied; with the first groups
/// of K also the bias.
void multiply(const Operands& operands, const Panel& panel, Scaling scaling, float* sums);

/// Factor on row r before it is rounded.
inline float routing_weight(const MoeGemmArgs& args, int32_t r) {
  return args.routing_weights ? args.routing_weights[r] : 1;
}
/// Routing weights and rounding of a panel's dot products [panel.rows, panel.columns].
void store(const MoeGemmArgs& args, const Panel& panel, const float* sums);

/// Calls work(panel) for every panel of the output; called by every thread of a parallel region,
/// ends with a barrier.
template <class Work>
void for_panels(const Operands& operands, Work work) {
  const MoeGemmArgs& args = operands.args;
  const int block = args.shape.block, blocks = *args.padded_rows / block;
#pragma omp for schedule(static) collapse(2)
  for (int b = 0; b < blocks; ++b) {
    for (int column = 0; column < args.shape.n; column += kPanelColumns) {
      const int rows = rows_in_block(args, b);
      for (int row = 0; row < rows; row += kPanelRows) {
        work(panel_at(operands, b * block + row, std::min(kPanelRows, rows - row), column));
      }
    }
  }
}

/// The whole product, panel by panel; `widen` writes operands.x, as widen_source_rows() does. The
/// defaults are the variant `gather`, on which tests run every instruction set; it needs
/// widened_bytes() at operands.x.
void launch_panels(const Operands& operands, Scaling scaling = Scaling::per_column,
                   void (*widen)(const Operands&) = widen_source_rows);

extern const Isa kPortable, kAvx2, kAvx512;

}  // namespace moegate::moe_gemm::host
