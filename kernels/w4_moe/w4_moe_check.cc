// SPDX-License-Identifier: Apache-2.0
// How the output of a w4 product is judged: what of the operands comes to the host for the
// truth, the comparison, and the outputs spoilt on purpose.
#include <algorithm>
#include <map>

#include "kernels/check/sampled_rows.h"
#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe {
/// `at`: rows of this expert, columns of the output.
W4Product W4Moe::product_of(int32_t expert, const moe_gemm::MoeGemmSample& at, W4Slip slip) const {
  std::vector<int64_t> sources;
  for (const int32_t r : at.rows) sources.push_back(shape.source(r));
  W4Product p = weights_.product(device(), expert, at.columns, slip);
  p.x = check::from_bf16(check::rows_of<uint16_t>(device(), x_, shape.k, sources));
  if (routing_weights_) {
    const auto weights =
        check::rows_of<float>(device(), *routing_weights_, 1, {at.rows.begin(), at.rows.end()});
    p.routing_weights.assign(weights.begin(), weights.end());
  }
  return p;
}

/// The expected output at a sample, expert by expert: no more of the weights than one expert's is
/// ever on the host.
std::vector<double> W4Moe::truth(W4Slip slip, const moe_gemm::MoeGemmSample& at) const {
  std::map<int32_t, std::vector<size_t>> places;  // in the sample, of an expert's rows
  for (size_t i = 0; i < at.rows.size(); ++i) {
    places[experts_[static_cast<size_t>(at.rows[i])]].push_back(i);
  }
  const size_t width = at.columns.size();
  std::vector<double> all(at.rows.size() * width);
  for (const auto& [expert, of_expert] : places) {
    moe_gemm::MoeGemmSample mine{{}, at.columns};
    for (const size_t i : of_expert) mine.rows.push_back(at.rows[i]);
    const auto part = w4_truth(shape, product_of(expert, mine, slip), slip);
    for (size_t i = 0; i < of_expert.size(); ++i) {
      std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  all.begin() + static_cast<std::ptrdiff_t>(of_expert[i] * width));
    }
  }
  return all;
}

/// "token 12, expert 5"
check::RowName W4Moe::row_name() const {
  return [this](int64_t row) {
    return fmt::format("token {}, expert {}", row / shape.topk, experts_[static_cast<size_t>(row)]);
  };
}

Tolerance W4Moe::own_ceilings() const {
  const bool rounded = shape.weights == W4Weights::int4 && scaling_ == W4Scaling::in_bf16;
  if (!rounded) return ceilings(kTolerance);
  return ceilings(shape.down ? kRoundedDown : kRoundedGateUp);
}

Checked W4Moe::check() const {
  const auto bits = out_.download<uint16_t>();
  Accuracy a = check::compare_bf16_at(out_.name(), bits, shape.outputs(), sample_.rows,
                                      sample_.columns, truth_, own_ceilings(), row_name());
  return {{a}, hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

std::vector<TokenRows> W4Moe::rows_of(int64_t place) const {
  return {{&out_, shape.outputs(), check::rows_of_token(place, shape.topk)}};
}

std::vector<SampledOutput> W4Moe::sampled_outputs() const {
  if (static_cast<int64_t>(truth_.size()) == out_.size()) return {};
  return {{&out_, shape.rows(), shape.outputs(), {}, own_ceilings()}};
}

std::vector<Accuracy> W4Moe::check_rows(const std::vector<int64_t>& rows) {
  const moe_gemm::MoeGemmSample at{{rows.begin(), rows.end()},
                                   moe_gemm::all_below(shape.outputs())};
  const auto& expected = row_truth_.of(rows, [&] { return truth(W4Slip::none, at); });
  return {check::compare_bf16_rows(device(), out_, shape.outputs(), rows, {}, expected,
                                   own_ceilings(), row_name())};
}

Corruptions W4Moe::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_experts(); }),
          .token_dropped = Corruption([this] { drop_row(); }),
          .scales_transposed = Corruption([this] {
            if (shape.groups() > 1) slip(W4Slip::scales_transposed);
          })};
}

/// The first row changes places with one that another expert made.
void W4Moe::swap_experts() {
  const int32_t first = sample_.rows.front();
  const auto expert = [&](int32_t r) { return experts_[static_cast<size_t>(r)]; };
  const auto other = std::find_if(sample_.rows.begin(), sample_.rows.end(),
                                  [&](int32_t r) { return expert(r) != expert(first); });
  if (other == sample_.rows.end()) return;  // one expert has all
  auto out = out_.download<uint16_t>();
  const auto width = static_cast<std::ptrdiff_t>(shape.outputs());
  std::swap_ranges(out.begin() + first * width, out.begin() + (first + 1) * width,
                   out.begin() + *other * width);
  out_.upload(out);
}

/// A row of zeros, as where an expert's part of a token was never computed.
void W4Moe::drop_row() {
  auto out = out_.download<uint16_t>();
  std::fill_n(out.begin() + int64_t{sample_.rows.front()} * shape.outputs(), shape.outputs(),
              uint16_t{0});
  out_.upload(out);
}

void W4Moe::slip(W4Slip slip) {
  const auto wrong = truth(slip, sample_);
  auto out = out_.download<uint16_t>();
  size_t i = 0;
  for (const int64_t r : sample_.rows) {
    uint16_t* row = out.data() + r * shape.outputs();
    for (const int32_t c : sample_.columns) row[c] = float_to_bf16(static_cast<float>(wrong[i++]));
  }
  out_.upload(out);
}

}  // namespace moegate::w4_moe
