// SPDX-License-Identifier: Apache-2.0
// The truth of fused_moe: the truths of its parts one after the other, rounded where the layer
// rounds, expert by expert, so that no more of the weights than one expert's is ever on the host.
#include "kernels/check/sampled_rows.h"
#include "kernels/fused_moe/fused_moe.h"
#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::fused_moe {
namespace {

/// Scale factors of every column, [N, K/128], from those of a matrix, [N/128, K/128].
std::vector<float> of_columns(const std::vector<float>& scales, int n, int k, bool transposed) {
  const auto columns = static_cast<size_t>(n), k_groups = static_cast<size_t>(k / kMoeGroup);
  const size_t n_groups = columns / kMoeGroup;
  std::vector<float> all;
  for (size_t c = 0; c < columns; ++c) {
    const size_t group = c / kMoeGroup;
    for (size_t g = 0; g < k_groups; ++g) {
      all.push_back(scales[transposed ? g * n_groups + group : group * k_groups + g]);
    }
  }
  return all;
}

void set_x(moe_gemm::ExpertProduct& product, const silu_mul_quant::QuantisedRows& rows) {
  for (const double code : rows.codes) {
    product.x.push_back(float_to_e4m3(static_cast<float>(code)));
  }
  product.x_scales.assign(rows.scales.begin(), rows.scales.end());
}

}  // namespace

check::Assignment FusedMoe::assignment(Fault fault) const {
  check::Assignment a{experts_, topk_weights_.download<float>(), shape.topk};
  if (fault == Fault::token_dropped) a.drop_row(tokens_);
  if (fault == Fault::experts_swapped) a.swap_experts(tokens_);
  return a;
}

void FusedMoe::set_input(moe_gemm::ExpertProduct& product,
                         const std::vector<int64_t>& sources) const {
  if (x_scales_) {
    product.x = check::rows_of<uint8_t>(device(), x_, shape.hidden, sources);
    product.x_scales =
        check::rows_of<float>(device(), *x_scales_, shape.hidden / kMoeGroup, sources);
    return;
  }
  const auto bits = check::rows_of<uint16_t>(device(), x_, shape.hidden, sources);
  set_x(product, silu_mul_quant::quantisation_truth(check::from_bf16(bits)));
}

std::vector<double> FusedMoe::expert_rows(int32_t expert, const std::vector<int64_t>& rows,
                                          const std::vector<float>& weights,
                                          bool transposed) const {
  const int h = shape.hidden, i = shape.inter;
  std::vector<int64_t> sources;
  for (const int64_t r : rows) sources.push_back(r / shape.topk);
  const auto part = [&](const Tensor& tensor, auto element) {
    using T = decltype(element);
    return check::rows_of<T>(device(), tensor, tensor.size() / shape.experts, {expert});
  };
  moe_gemm::ExpertProduct up{.k = h, .dtype = DType::e4m3};
  set_input(up, sources);
  up.weights = part(w1_, uint8_t{});
  up.weight_scales = of_columns(part(w1_scales_, float{}), 2 * i, h, transposed);

  moe_gemm::ExpertProduct down{.k = i, .dtype = DType::e4m3};
  set_x(down, silu_mul_quant::silu_mul_quant_truth(check::to_bf16(moe_gemm::expert_truth(up)), i));
  down.weights = part(w2_, uint8_t{});
  down.weight_scales = of_columns(part(w2_scales_, float{}), h, i, transposed);
  for (const int64_t r : rows) down.routing_weights.push_back(weights[static_cast<size_t>(r)]);
  return check::from_bf16(check::to_bf16(moe_gemm::expert_truth(down)));
}

std::vector<double> FusedMoe::truth(Fault fault, const std::vector<int64_t>& tokens) const {
  const check::Assignment assigned = assignment(fault);
  return check::sums_of_tokens(
      assigned, tokens, shape.hidden, [&](int32_t expert, const std::vector<int64_t>& rows) {
        return expert_rows(expert, rows, assigned.weights, fault == Fault::scales_transposed);
      });
}

}  // namespace moegate::fused_moe
