// SPDX-License-Identifier: Apache-2.0
// How the output of dense_fc2 is judged, and outputs spoilt on purpose.
#include <algorithm>

#include "kernels/check/sampled_rows.h"
#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2 {

/// A row whose alpha is 0 everywhere is a sum of nothing, to the bit, though not of which sign.
void DenseFc2::reject_nonzero_rows(Accuracy& a, const std::vector<uint16_t>& bits) const {
  const int64_t width = shape.hidden;
  for (int64_t t = 0; t < shape.tokens && a.ok; ++t) {
    const auto alpha = alphas_.begin() + t * shape.experts;
    if (std::any_of(alpha, alpha + shape.experts, [](float x) { return x != 0; })) continue;
    const auto row = bits.begin() + t * width;
    const auto stray = std::find_if(row, row + width, [](uint16_t x) { return (x & 0x7fff) != 0; });
    if (stray == row + width) continue;
    a.ok = false;
    a.worst_index = stray - bits.begin();
    a.why = fmt::format("{}: element {} is {}, but every alpha of row {} is 0", a.output,
                        a.worst_index, bf16_to_float(*stray), t);
  }
}

/// Sums of an expert's whole K stay in the tensor cores: measured on an H200, 9.5 % of elements are
/// not the truth rounded, where sums taken out every 128 of K leave 6.5 %.
Tolerance DenseFc2::own_ceilings() const {
  Tolerance tolerance = kTolerance;
  if (device().facts().backend == Backend::cuda) tolerance.between = 2 * check::kFp8TensorCores;
  return ceilings(tolerance);
}

Checked DenseFc2::check() const {
  const auto bits = out_.download<uint16_t>();
  Accuracy a = check::compare_bf16_at(out_.name(), bits, shape.hidden, sample_.rows,
                                      sample_.columns, truth_, own_ceilings(), check::token_name);
  reject_nonzero_rows(a, bits);
  return {{a}, hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

std::vector<TokenRows> DenseFc2::rows_of(int64_t place) const {
  return {{&out_, shape.hidden, {place}}};
}

std::vector<SampledOutput> DenseFc2::sampled_outputs() const {
  if (static_cast<int64_t>(truth_.size()) == out_.size()) return {};
  return {{&out_, shape.tokens, shape.hidden, {}, own_ceilings()}};
}

std::vector<Accuracy> DenseFc2::check_rows(const std::vector<int64_t>& rows) {
  const moe_gemm::MoeGemmSample at{{rows.begin(), rows.end()}, moe_gemm::all_below(shape.hidden)};
  const auto& expected = row_truth_.of(rows, [&] { return truth(Fault::none, at); });
  return {check::compare_bf16_rows(device(), out_, shape.hidden, rows, {}, expected, own_ceilings(),
                                   check::token_name)};
}

Corruptions DenseFc2::corruptions() {
  return {.experts_swapped = Corruption([this] { spoil(Fault::experts_swapped); }),
          .token_dropped = Corruption([this] { spoil(Fault::token_dropped); }),
          .scales_transposed =
              shape.block_scales ? Corruption([this] { spoil(Fault::scales_transposed); })
                                 : Corruption::not_applicable("each operand has one scale factor")};
}

/// Makes the output what it were with the fault, where that changes it.
void DenseFc2::spoil(Fault fault) {
  check::spoil_bf16(out_, shape.hidden, sample_.rows, sample_.columns, truth_,
                    truth(fault, sample_));
}

}  // namespace moegate::dense_fc2
