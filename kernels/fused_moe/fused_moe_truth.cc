// SPDX-License-Identifier: Apache-2.0
// The truth of fused_moe: the truths of its parts one after the other, rounded where the layer
// rounds, expert by expert, so that no more of the weights than one expert's is ever on the host.
#include <map>

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

/// Of each token that is compared and has rows of this rank: the first of them.
std::vector<size_t> FusedMoe::first_rows() const {
  std::vector<size_t> rows;
  for (const int64_t t : tokens_) {
    for (int64_t r = t * shape.topk; r < (t + 1) * shape.topk; ++r) {
      if (experts_[static_cast<size_t>(r)] < 0) continue;
      rows.push_back(static_cast<size_t>(r));
      break;
    }
  }
  return rows;
}

FusedMoe::Assignment FusedMoe::assignment(Fault fault) const {
  Assignment a{experts_, topk_weights_.download<float>()};
  const std::vector<size_t> rows = first_rows();
  if (rows.empty()) return a;
  if (fault == Fault::token_dropped) a.weights[rows.front()] = 0;
  if (fault != Fault::experts_swapped) return a;
  // The first row changes experts with a row of another token.
  int32_t& expert = a.experts[rows.front()];
  for (const size_t other : rows) {
    if (a.experts[other] == expert) continue;
    std::swap(a.experts[other], expert);
    break;
  }
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
  const Assignment assigned = assignment(fault);
  const auto width = static_cast<size_t>(shape.hidden);
  std::map<int32_t, std::vector<int64_t>> rows_of_expert;
  for (const int64_t t : tokens) {
    for (int64_t r = t * shape.topk; r < (t + 1) * shape.topk; ++r) {
      const int32_t expert = assigned.experts[static_cast<size_t>(r)];
      if (expert >= 0) rows_of_expert[expert].push_back(r);
    }
  }
  std::map<int64_t, size_t> place;  // of a token in the sample
  for (size_t i = 0; i < tokens.size(); ++i) place[tokens[i]] = i;
  // Sums of at most 16 bf16 values: in double their order does not show.
  std::vector<double> out(tokens.size() * width);
  for (const auto& [expert, rows] : rows_of_expert) {
    const auto y = expert_rows(expert, rows, assigned.weights, fault == Fault::scales_transposed);
    for (size_t i = 0; i < rows.size(); ++i) {
      double* to = out.data() + place[rows[i] / shape.topk] * width;
      for (size_t c = 0; c < width; ++c) to[c] += y[i * width + c];
    }
  }
  return out;
}

}  // namespace moegate::fused_moe
