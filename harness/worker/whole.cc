// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/whole.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "harness/base/stats.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/object_code.h"
#include "harness/kernel/random_fill.h"

namespace moegate {
namespace {

constexpr double kFloor = 1e-3;  // of the median row, that a smaller one counts as

/// `off` of the truth, seen from the reference: the truth may be smaller than it by its own error.
double relative_to_reference(double off, double of_reference) {
  constexpr double kMost = 0.5;  // a reference that is further off tells nothing of sizes
  return of_reference < kMost ? off / (1 - of_reference) : std::numeric_limits<double>::infinity();
}

/// What no file tells apart: one file, or the files of one room below the operator's.
bool shares_code(const Variant& a, const Variant& b, const OpEntry& op) {
  const auto folder = [](const std::string& file) { return file.substr(0, file.rfind('/') + 1); };
  return a.file == b.file ||
         (folder(a.file) == folder(b.file) && folder(a.file) != folder(op.file));
}

bool is_named(const Variant& v, const OpEntry& op) {
  if (v.backend == Backend::host && v.name == op.yardstick) return true;
  const auto& befores = v.backend == Backend::host ? op.before.host : op.before.cuda;
  return std::ranges::count(befores, v.name, &Before::variant) > 0;
}

}  // namespace

KeptOutputs keep_outputs(Problem& problem, const Leeway& leeway) {
  KeptOutputs kept;
  for (SampledOutput& output : problem.sampled_outputs_with(leeway)) {
    const Tensor& from = *output.tensor;
    auto copy = std::make_unique<Tensor>(problem.device(), from.name(), Role::output, from.dtype(),
                                         from.shape());
    problem.device().copy(copy->data(), from.data(), from.bytes());
    kept.push_back({std::move(copy), std::move(output.places), output.tolerance});
  }
  problem.device().synchronize();
  return kept;
}

Tolerance allowed_apart(const Tolerance& out, const Tolerance& reference) {
  Tolerance allowed;
  const double rtol = out.rtol + reference.rtol;
  allowed.rtol = relative_to_reference(rtol, reference.rtol);
  // |truth| <= (|reference| + its atol) / (1 - its rtol)
  allowed.atol = out.atol + reference.atol + allowed.rtol * reference.atol;
  allowed.row = relative_to_reference(out.row + reference.row, reference.row);
  return allowed;
}

void judge_rows(const std::vector<RowDistance>& rows, int64_t width, const Tolerance& allowed,
                WholeComparison& comparison) {
  comparison.rows = static_cast<int64_t>(rows.size());
  comparison.ceiling = allowed.row;
  if (rows.empty()) return;
  std::vector<double> sizes, errors;
  for (const RowDistance& r : rows) sizes.push_back(std::sqrt(r.size / static_cast<double>(width)));
  const double floor = std::max(kFloor * median(sizes), std::numeric_limits<double>::min());
  std::vector<std::tuple<bool, double, int64_t>> over;  // not finite, error, row
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowDistance& r = rows[i];
    const double rms = std::sqrt(r.error / static_cast<double>(width));
    errors.push_back(rms / std::max(sizes[i], floor));
    comparison.nonfinite += r.nonfinite;
    // Written so that NaN is over.
    if (r.nonfinite == 0 && r.outside == 0 && errors[i] <= allowed.row) continue;
    over.emplace_back(r.nonfinite > 0, errors[i], static_cast<int64_t>(i));
  }
  comparison.rows_over = static_cast<int64_t>(over.size());
  const size_t shown = std::min(over.size(), kWorst);
  std::partial_sort(over.begin(), over.begin() + static_cast<std::ptrdiff_t>(shown), over.end(),
                    std::greater<>());
  for (size_t i = 0; i < shown; ++i) comparison.worst.push_back(std::get<2>(over[i]));
  comparison.worst_row = *std::ranges::max_element(errors);
}

std::vector<WholeComparison> compare_whole(const Problem& problem, const KeptOutputs& reference) {
  std::vector<WholeComparison> all;
  const auto data = [](const std::vector<int32_t>& places) {
    return places.empty() ? nullptr : places.data();
  };
  for (const SampledOutput& output : problem.sampled_outputs()) {
    const KeptOutput& kept = reference.at(all.size());
    const Tolerance allowed = allowed_apart(output.tolerance, kept.tolerance);
    WholeComparison comparison;
    comparison.output = output.tensor->name();
    const auto rows = problem.device().row_distances({.out = output.tensor->data(),
                                                      .reference = kept.copy->data(),
                                                      .out_places = data(output.places),
                                                      .reference_places = data(kept.places),
                                                      .rows = output.rows,
                                                      .width = output.width,
                                                      .dtype = output.tensor->dtype(),
                                                      .atol = allowed.atol,
                                                      .rtol = allowed.rtol});
    judge_rows(rows, output.width, allowed, comparison);
    all.push_back(std::move(comparison));
  }
  return all;
}

std::vector<const Variant*> references_for(const Variant& variant, const OpEntry& op,
                                           const std::vector<Variant>& variants, const Case& c,
                                           const DeviceFacts& device) {
  std::vector<const Variant*> candidates;
  for (const Variant& v : variants) {
    if (v.op != op.name || v.backend != device.backend || v.name == variant.name) continue;
    if (is_configuration(v.name) || !why_unsupported(v, c, device).empty()) continue;
    candidates.push_back(&v);
  }
  std::ranges::stable_sort(candidates, {}, [&](const Variant* v) {
    return std::tuple(shares_code(*v, variant, op), !is_named(*v, op), v->leeway.factor);
  });
  return candidates;
}

std::vector<int64_t> drawn_rows(const Problem& problem, uint64_t sample_seed) {
  constexpr uint64_t kStream = 901;     // of the counter-based generator
  constexpr double kMostFlops = 2.5e8;  // of a double truth on the host
  constexpr double kMostRows = 16;
  const auto outputs = problem.sampled_outputs();
  if (outputs.empty()) return {};
  const auto rows = static_cast<uint64_t>(outputs[0].rows);
  const double each = problem.cost().flops / static_cast<double>(rows);
  const auto count = static_cast<uint64_t>(std::clamp(kMostFlops / each, 1.0, kMostRows));
  std::set<int64_t> drawn;
  for (uint64_t i = 0; i < count; ++i) {
    drawn.insert(static_cast<int64_t>(random_bits(sample_seed, kStream, i) % rows));
  }
  return {drawn.begin(), drawn.end()};
}

}  // namespace moegate
