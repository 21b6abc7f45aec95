// SPDX-License-Identifier: Apache-2.0
// Cases of the grouped GEMMs for tests: small ones, with some parameters replaced; and a launch of
// one variant outside of the harness.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm {

using check::Params;

/// Formats whose scale factors follow the sum over all of K.
inline const std::vector<Params> kScaledOnce = {{{"scaling", "channel"}},
                                                {{"scaling", "tensor"}},
                                                {{"dtype", "int8"}, {"scaling", "channel"}},
                                                {{"dtype", "int8"}, {"scaling", "tensor"}}};
/// Formats that take a bias, and have one.
inline std::vector<Params> biased_formats() {
  std::vector<Params> formats = kScaledOnce;
  formats.push_back({{"dtype", "bf16"}});
  for (Params& format : formats) format["bias"] = "1";
  return formats;
}

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 256, I = 128 unless replaced.
template <class P>
Case moe_gemm_case(const Params& params) {
  return check::case_of(
      P::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "256"}, {"inter", "128"}});
}

/// K = hidden in gate_up, inter in down; N = 2 * inter or hidden.
template <class P>
Case product_case(Params params, int k, int n) {
  const bool down = std::is_same_v<P, MoeDown>;
  params[down ? "inter" : "hidden"] = std::to_string(k);
  params[down ? "hidden" : "inter"] = std::to_string(down ? n : n / 2);
  return moe_gemm_case<P>(params);
}

/// A case of int8 whose truth waits for give_large_sums().
inline Case large_sums_case(const Params& more = {}) {
  Params params = {{"dtype", "int8"}, {"scaling", "channel"}, {"experts", "2"},
                   {"topk", "1"},     {"tokens", "5"},        {"block", "16"}};
  params.insert(more.begin(), more.end());
  Case c = product_case<MoeDown>(params, 1 << 16, 136);
  c.truth = false;
  return c;
}

/// Gives all rows and columns products that add up to 2^28 in the first half of K and, in another
/// order, to as little less in the second that 1 is left: fp32 would lose it anywhere on the way.
inline void give_large_sums(Device& device, MoeGemm& problem) {
  const MoeGemmShape& s = problem.shape;
  const auto k = static_cast<size_t>(s.k), half = k / 2;
  std::vector<int8_t> x(k), weights(k);
  for (size_t i = 0; i + 1 < half; ++i) {
    const size_t mirrored = half + i * 5 % (half - 1);  // every one once
    x[i] = x[mirrored] = static_cast<int8_t>(64 + random_bits(1, 1, i) % 64);
    weights[i] = static_cast<int8_t>(64 + random_bits(1, 2, i) % 64);
    weights[mirrored] = static_cast<int8_t>(-weights[i]);
  }
  x[half - 1] = weights[half - 1] = 1;
  const BiasedArgs args = problem.args();
  const auto put = [&](const void* to, const std::vector<int8_t>& row, int64_t rows) {
    std::vector<int8_t> all;
    for (int64_t r = 0; r < rows; ++r) all.insert(all.end(), row.begin(), row.end());
    device.upload(const_cast<void*>(to), all.data(), all.size());
  };
  put(args.x, x, s.source_rows());
  put(args.weights, weights, int64_t{s.experts} * s.n);
  problem.find_truth();
}

}  // namespace moegate::moe_gemm
