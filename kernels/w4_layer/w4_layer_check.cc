// SPDX-License-Identifier: Apache-2.0
// The truth of w4_layer, the truths of its products one behind the other, and how an output is
// judged. No more of the weights than one expert's is ever on the host.
#include <algorithm>
#include <cmath>

#include "kernels/check/sampled_rows.h"
#include "kernels/w4_layer/w4_layer.h"

namespace moegate::w4_layer {

using w4_moe::W4Product;
using w4_moe::W4Slip;

/// y of some rows of one expert, [rows, H], rounded.
std::vector<double> W4Layer::expert_rows(int32_t expert, const std::vector<int64_t>& rows,
                                         const std::vector<float>& weights, W4Slip slip) const {
  std::vector<int64_t> sources;
  for (const int64_t r : rows) sources.push_back(r / shape.topk());
  W4Product up = w1_.product(device(), expert, moe_gemm::all_below(shape.inter()), slip);
  up.x = check::from_bf16(check::rows_of<uint16_t>(device(), x_, shape.hidden(), sources));
  W4Product down = w2_.product(device(), expert, moe_gemm::all_below(shape.hidden()), slip);
  down.x = check::from_bf16(check::to_bf16(w4_truth(shape.gate_up, up, slip)));
  for (const int64_t r : rows) down.routing_weights.push_back(weights[static_cast<size_t>(r)]);
  return check::from_bf16(check::to_bf16(w4_truth(shape.down, down, slip)));
}

std::vector<double> W4Layer::truth(const std::vector<int64_t>& tokens,
                                   const check::Assignment& assigned, W4Slip slip) const {
  return check::sums_of_tokens(assigned, tokens, shape.hidden(),
                               [&](int32_t expert, const std::vector<int64_t>& rows) {
                                 return expert_rows(expert, rows, assigned.weights, slip);
                               });
}

check::Assignment W4Layer::assignment() const {
  return {experts_, topk_weights_.download<float>(), shape.topk()};
}

bool W4Layer::find_truth() {
  if (truth_.empty()) truth_ = truth(tokens_, assignment(), W4Slip::none);
  return true;
}

Tolerance W4Layer::own_ceilings() const {
  const bool is_rounded =
      shape.gate_up.weights == w4_moe::W4Weights::int4 && scaling_ == W4Scaling::in_bf16;
  Tolerance tolerance = is_rounded ? kRounded : kTolerance;
  const double root = std::sqrt(static_cast<double>(shape.topk()) * shape.inter());
  tolerance.by_chance = kActivationAnew * float_type(DType::bf16).unit() / root;
  tolerance.atol += kElementAnew / root;
  return ceilings(tolerance);
}

Checked W4Layer::check() const {
  return check::check_bf16_rows(out_, shape.hidden(), tokens_, truth_, own_ceilings(),
                                check::token_name);
}

std::vector<TokenRows> W4Layer::rows_of(int64_t place) const {
  return {{&out_, shape.hidden(), {place}}};
}

std::vector<SampledOutput> W4Layer::sampled_outputs() const {
  if (static_cast<int>(tokens_.size()) == shape.tokens()) return {};
  return {{&out_, shape.tokens(), shape.hidden(), {}, own_ceilings()}};
}

std::vector<Accuracy> W4Layer::check_rows(const std::vector<int64_t>& tokens) {
  const auto& expected =
      row_truth_.of(tokens, [&] { return truth(tokens, assignment(), W4Slip::none); });
  return {check::compare_bf16_rows(device(), out_, shape.hidden(), tokens, {}, expected,
                                   own_ceilings(), check::token_name)};
}

Corruptions W4Layer::corruptions() {
  const auto assigned_otherwise = [this](auto change) {
    return Corruption([this, change] {
      check::Assignment a = assignment();
      (a.*change)(tokens_);
      put(truth(tokens_, a, W4Slip::none));
    });
  };
  return {.experts_swapped = assigned_otherwise(&check::Assignment::swap_experts),
          .token_dropped = assigned_otherwise(&check::Assignment::drop_row),
          .scales_transposed = Corruption([this] {
            if (shape.gate_up.groups() > 1) slip(W4Slip::scales_transposed);
          })};
}

void W4Layer::slip(W4Slip slip) {
  put(truth(tokens_, assignment(), slip));
}

/// Into the output, where it differs from the truth.
void W4Layer::put(const std::vector<double>& wrong) {
  check::spoil_bf16(out_, shape.hidden(), tokens_, moe_gemm::all_below(shape.hidden()), truth_,
                    wrong);
}

}  // namespace moegate::w4_layer
