// SPDX-License-Identifier: Apache-2.0
// The truth of the router's logits: plain double code, written to be read next to the definition in
// router_gemm.h. No variant shares a line with it. What is wrong on purpose is in it, too.
#include <algorithm>

#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

double dot(const double* a, const double* b, int elements) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < elements; ++i) sum += a[i] * b[i];
  return sum;
}

double through_bf16(double value) {
  return double{bf16_to_float(float_to_bf16(static_cast<float>(value)))};
}

/// The operands as one with the mistake takes them.
RouterOperands mistaken(const RouterGemmShape& shape, RouterOperands operands, RouterSlip slip) {
  const int64_t width = shape.hidden;
  const auto swap_first_two = [](std::vector<double>& rows, int64_t elements) {
    if (static_cast<int64_t>(rows.size()) < 2 * elements) return;
    std::swap_ranges(rows.begin(), rows.begin() + elements, rows.begin() + elements);
  };
  if (slip == RouterSlip::experts_swapped) {
    swap_first_two(operands.w, width);
    swap_first_two(operands.bias, 1);
  }
  if (slip == RouterSlip::tokens_swapped) swap_first_two(operands.x, width);
  if (slip == RouterSlip::token_dropped) std::fill_n(operands.x.begin(), width, 0);
  if (slip == RouterSlip::weights_in_bf16) {
    for (double& w : operands.w) w = through_bf16(w);
  }
  for (double& b : operands.bias) {
    if (slip == RouterSlip::bias_dropped) b = 0;
    if (slip == RouterSlip::bias_twice) b *= 2;
  }
  return operands;
}

}  // namespace

std::vector<double> router_gemm_truth(const RouterGemmShape& shape, const RouterOperands& right,
                                      RouterSlip slip) {
  constexpr int kTail = 64;
  const RouterOperands wrong =
      slip == RouterSlip::none ? RouterOperands{} : mistaken(shape, right, slip);
  const RouterOperands& operands = slip == RouterSlip::none ? right : wrong;
  const auto width = static_cast<size_t>(shape.hidden),
             experts = static_cast<size_t>(shape.experts);
  const int elements =
      slip == RouterSlip::k_tail_missing ? (shape.hidden - 1) / kTail * kTail : shape.hidden;
  std::vector<double> logits(operands.x.size() / width * experts);
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < logits.size(); ++i) {
    const size_t row = i / experts, e = i % experts;
    const double sum =
        dot(operands.x.data() + row * width, operands.w.data() + e * width, elements);
    const double logit = sum + (operands.bias.empty() ? 0 : operands.bias[e]);
    logits[i] = slip == RouterSlip::logits_in_bf16 ? through_bf16(logit) : logit;
  }
  return logits;
}

}  // namespace moegate::router_gemm
