// SPDX-License-Identifier: Apache-2.0
// Outputs of which check() sees a sample only, compared whole: with another variant's, row by row,
// where they are. Knows no Bench.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

/// A copy of what one variant left in a sampled output of one problem, out of reach of the others.
struct KeptOutput {
  std::unique_ptr<Tensor> copy;
  std::vector<int32_t> places;
  Tolerance tolerance;
};
using KeptOutputs = std::vector<KeptOutput>;
/// `leeway`: the variant's.
KeptOutputs keep_outputs(Problem& problem, const Leeway& leeway);

/// What the whole of one output is beside another variant's.
struct WholeComparison {
  std::string output;
  int64_t rows = 0;
  int64_t rows_over = 0;  // beyond what two right outputs can be apart
  int64_t nonfinite = 0;  // elements
  double worst_row = 0, ceiling = 0;
  std::vector<int64_t> worst;  // up to kWorst rows beyond it, the worst first
};
constexpr size_t kWorst = 4;

/// Two outputs that are within their tolerances of the truth are no further apart than both
/// together, in an element and in a row: `allowed` is relative to `reference`'s output, whose own
/// it is.
Tolerance allowed_apart(const Tolerance& out, const Tolerance& reference);
/// Compares the outputs that a problem holds with those kept; one per sampled output.
std::vector<WholeComparison> compare_whole(const Problem& problem, const KeptOutputs& reference);
/// Pure; exposed for tests.
void judge_rows(const std::vector<RowDistance>& rows, int64_t width, const Tolerance& allowed,
                WholeComparison& comparison);

/// Candidates for a reference of `variant` in a case, the best first: other variants that run it;
/// of another file and room before its own; what the operator names as before or yardstick first,
/// then narrow tolerances.
std::vector<const Variant*> references_for(const Variant& variant, const OpEntry& op,
                                           const std::vector<Variant>& variants, const Case& c,
                                           const DeviceFacts& device);

/// Rows of a problem's sampled outputs, drawn by the seed, ascending: 1 to 16, fewer where a row is
/// much work for the host. Empty: nothing is sampled.
std::vector<int64_t> drawn_rows(const Problem& problem, uint64_t sample_seed);

}  // namespace moegate
