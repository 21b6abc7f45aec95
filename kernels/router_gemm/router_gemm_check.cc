// SPDX-License-Identifier: Apache-2.0
// How the router's logits are judged: what of the operands comes to the host for the truth, the
// comparison of the logits and of the experts that they choose, and logits spoilt on purpose.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/check/sampled_rows.h"
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

/// Rows of a tensor [any, width] of bf16 or fp32.
template <class T>
std::vector<T> values_of(Device& device, const Tensor& tensor, int64_t width,
                         const std::vector<int64_t>& rows) {
  if (tensor.dtype() == DType::f32) {
    const auto values = check::rows_of<float>(device, tensor, width, rows);
    return {values.begin(), values.end()};
  }
  const auto bits = check::rows_of<uint16_t>(device, tensor, width, rows);
  std::vector<T> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [](uint16_t b) { return T{bf16_to_float(b)}; });
  return values;
}

std::vector<int64_t> all_rows(int64_t rows) {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Which experts' logits are the k largest.
template <class T>
std::vector<bool> chosen_of(const T* logits, int experts, int topk) {
  std::vector<int> order(static_cast<size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + topk, order.end(), [&](int a, int b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<bool> chosen(order.size());
  for (int j = 0; j < topk; ++j) chosen[static_cast<size_t>(order[static_cast<size_t>(j)])] = true;
  return chosen;
}

double ulp_of(const FloatType& type, double value) {
  return std::ldexp(1.0, std::ilogb(value) - type.digits + 1);
}

bool is_flipped(const RouterGemmShape& shape, const float* logits, const double* truth,
                double rel_l2) {
  constexpr double kUlps = 4, kErrors = 6;
  double squares = 0, least = INFINITY, most = -INFINITY;  // among those in place, those missing
  const auto is = chosen_of(logits, shape.experts, shape.topk);
  const auto should_be = chosen_of(truth, shape.experts, shape.topk);
  for (int e = 0; e < shape.experts; ++e) {
    const auto i = static_cast<size_t>(e);
    squares += truth[e] * truth[e];
    if (is[i] && !should_be[i]) least = std::min(least, truth[e]);
    if (should_be[i] && !is[i]) most = std::max(most, truth[e]);
  }
  if (!std::isfinite(least)) return false;
  const double rms = std::sqrt(squares / shape.experts);
  const double size = std::max({std::abs(least), std::abs(most), rms});
  return most - least >
         std::max(kUlps * ulp_of(float_type(shape.out), size), kErrors * rel_l2 * rms);
}

template <class T>
bool all_finite(const T* values, int count) {
  return std::all_of(values, values + count, [](T v) { return std::isfinite(v); });
}

}  // namespace

std::vector<int64_t> flipped_rows(const RouterGemmShape& shape, const std::vector<float>& logits,
                                  const std::vector<double>& truth, double rel_l2) {
  std::vector<int64_t> flipped;
  const auto width = static_cast<size_t>(shape.experts);
  for (size_t row = 0; row * width < logits.size(); ++row) {
    const float* is = logits.data() + row * width;
    const double* should_be = truth.data() + row * width;
    if (!all_finite(is, shape.experts) || !all_finite(should_be, shape.experts)) continue;
    if (is_flipped(shape, is, should_be, rel_l2)) flipped.push_back(static_cast<int64_t>(row));
  }
  return flipped;
}

RouterOperands RouterGemm::operands_of(const std::vector<int64_t>& tokens) const {
  const auto experts = all_rows(shape.experts);
  RouterOperands operands{values_of<double>(device(), x_, shape.hidden, tokens),
                          values_of<double>(device(), w_, shape.hidden, experts),
                          {}};
  if (bias_) operands.bias = values_of<double>(device(), *bias_, 1, experts);
  return operands;
}

std::vector<double> RouterGemm::truth(const std::vector<int64_t>& tokens, RouterSlip slip) const {
  return router_gemm_truth(shape, operands_of(tokens), slip);
}

std::vector<float> RouterGemm::logits_of(const std::vector<int64_t>& tokens) const {
  return values_of<float>(device(), logits_, shape.experts, tokens);
}

Tolerance RouterGemm::own_ceilings() const {
  return ceilings(shape.out == DType::f32 ? kOfFp32 : kOfBf16);
}

/// Which experts the logits choose: an element for each token, all of which are right or not.
Accuracy RouterGemm::compare_topk(const std::vector<float>& logits) const {
  const auto flipped = flipped_rows(shape, logits, truth_, own_ceilings().rel_l2);
  Accuracy a;
  a.output = "flips";
  a.elements = static_cast<int64_t>(tokens_.size());
  a.mismatches = static_cast<int64_t>(flipped.size());
  a.ok = flipped.empty();
  if (a.ok) return a;
  a.worst_index = tokens_[static_cast<size_t>(flipped.front())];
  a.why =
      fmt::format("logits: the {} largest of {} of {} tokens are other experts', first of token {}",
                  shape.topk, a.mismatches, a.elements, a.worst_index);
  return a;
}

Checked RouterGemm::check() const {
  const auto all = logits_of(all_rows(shape.tokens));
  std::vector<float> logits;
  logits.reserve(truth_.size());
  for (const int64_t t : tokens_) {
    const auto row = all.begin() + t * shape.experts;
    logits.insert(logits.end(), row, row + shape.experts);
  }
  Accuracy a = compare_floats(samples() ? "logits (sample)" : "logits", logits, truth_,
                              shape.experts, own_ceilings(), float_type(shape.out),
                              {.rows = tokens_, .name = check::token_name});
  if (samples() && !shape.edges) {
    check::reject_nonfinite<float>(a, all, [](float v) { return !std::isfinite(v); });
  }
  return {{a, compare_topk(logits)}, hash_bytes(all.data(), all.size() * sizeof(float))};
}

std::vector<TokenRows> RouterGemm::rows_of(int64_t place) const {
  return {{&logits_, shape.experts, {place}}};
}

std::vector<SampledOutput> RouterGemm::sampled_outputs() const {
  if (!samples()) return {};
  return {{&logits_, shape.tokens, shape.experts, {}, own_ceilings()}};
}

std::vector<Accuracy> RouterGemm::check_rows(const std::vector<int64_t>& rows) {
  const auto& expected = row_truth_.of(rows, [&] { return truth(rows, RouterSlip::none); });
  return {compare_floats("logits (rows)", logits_of(rows), expected, shape.experts,
                         own_ceilings().of_rows(), float_type(shape.out),
                         {.rows = rows, .name = check::token_name})};
}

Corruptions RouterGemm::corruptions() {
  return {.experts_swapped = Corruption([this] { slip(RouterSlip::experts_swapped); }),
          .token_dropped = Corruption([this] { slip(RouterSlip::token_dropped); }),
          .scales_transposed = Corruption::not_applicable("operands have no scale factors")};
}

void RouterGemm::slip(RouterSlip slip) {
  const auto wrong = truth(tokens_, slip);
  std::vector<uint8_t> bytes(logits_.bytes());
  device().download(bytes.data(), logits_.data(), bytes.size());
  size_t i = 0;
  for (const int64_t t : tokens_) {
    for (int64_t at = t * shape.experts; at < (t + 1) * shape.experts; ++at) {
      write_float(shape.out, bytes.data(), at, static_cast<float>(wrong[i++]));
    }
  }
  device().upload(logits_.data(), bytes.data(), bytes.size());
}

}  // namespace moegate::router_gemm
