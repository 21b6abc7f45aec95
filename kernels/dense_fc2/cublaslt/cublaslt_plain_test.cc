// SPDX-License-Identifier: Apache-2.0
// What folding alpha into a costs and what its wider ceilings still reject, computed on the host;
// the variant itself on a real GPU; which cases it takes, wherever it is built.
#include "kernels/dense_fc2/cublaslt/cublaslt_plain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/device/open.h"
#include "harness/kernel/controls.h"
#include "kernels/dense_fc2/dense_fc2_testing.h"

namespace moegate::dense_fc2::cublaslt {
namespace {

// One slot for a token, so that rows differ most in size; the PR's experts; few of some.
const std::vector<Params> kFoldedCases = {
    {{"tokens", "7"}, {"experts", "1"}, {"topk", "1"}, {"hidden", "256"}},
    {{"tokens", "24"}, {"experts", "256"}, {"topk", "8"}, {"hidden", "256"}},
    {{"tokens", "13"}, {"experts", "16"}, {"topk", "4"}, {"hidden", "272"}}};

/// a with alpha in it, as the variant's prepare() leaves it.
struct FoldedA {
  std::vector<uint8_t> codes;  // [M, E*I]
  float scale;
};

FoldedA fold(const DenseFc2Args& args) {
  const DenseFc2Shape& s = args.shape;
  const int64_t count = int64_t{s.tokens} * s.k();
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(e4m3_to_float(args.a[i]) * args.alpha[i / s.inter]));
  }
  FoldedA folded{{}, folded_scale(args.a_scales[0], largest)};
  const float factor = code_factor(largest);
  for (int64_t i = 0; i < count; ++i) {
    folded.codes.push_back(folded_code(args.a[i], args.alpha[i / s.inter], factor));
  }
  return folded;
}

/// Writes out = folded a times b, over the experts that an alpha leaves.
void multiply_folded(DenseFc2& problem) {
  const DenseFc2Args args = problem.args();
  const DenseFc2Shape& s = args.shape;
  const FoldedA folded = fold(args);
  for (int64_t m = 0; m < s.tokens; ++m) {
    std::vector<double> sums(static_cast<size_t>(s.hidden));
    for (int64_t e = 0; e < s.experts; ++e) {
      if (args.alpha[m * s.experts + e] == 0) continue;
      std::vector<float> x;
      for (int64_t k = e * s.inter; k < (e + 1) * s.inter; ++k) {
        x.push_back(e4m3_to_float(folded.codes[static_cast<size_t>(m * s.k() + k)]));
      }
      for (size_t n = 0; n < sums.size(); ++n) {
        const uint8_t* b = args.b + static_cast<int64_t>(n) * s.k() + e * s.inter;
        float sum = 0;
        for (size_t k = 0; k < x.size(); ++k) sum += x[k] * e4m3_to_float(b[k]);
        sums[n] += sum;
      }
    }
    for (size_t n = 0; n < sums.size(); ++n) {
      const double value = sums[n] * folded.scale * args.b_scales[0];
      args.out[m * s.hidden + static_cast<int64_t>(n)] = float_to_bf16(static_cast<float>(value));
    }
  }
}

TEST(CublasltPlain, TheLargestIsTheLargestCodeAndZeroStaysZero) {
  const auto device = open_host_device();
  DenseFc2 problem(*device, dense_fc2_case({{"alphas", "edges"}}));
  const DenseFc2Args args = problem.args();
  const FoldedA folded = fold(args);
  int largest = 0;
  for (size_t i = 0; i < folded.codes.size(); ++i) {
    const int magnitude = folded.codes[i] & 0x7f;
    largest = std::max(largest, magnitude);
    if (args.alpha[i / static_cast<size_t>(args.shape.inter)] != 0) continue;
    EXPECT_EQ(magnitude, 0) << i;
  }
  EXPECT_EQ(largest, 0x7e) << "448, and no NaN";
  EXPECT_EQ(code_factor(0), 0) << "a tensor of zeros has zero codes, not NaN";
}

TEST(CublasltPlain, FoldingNeedsItsCeilings) {
  const auto device = open_host_device();
  for (const Params& params : kFoldedCases) {
    DenseFc2 problem(*device, dense_fc2_case(params));
    multiply_folded(problem);
    EXPECT_FALSE(problem.check().accuracy[0].ok) << "the operator's own are for other variants";
    const Accuracy a = problem.check_with({kTolerance, kBetween}).accuracy[0];
    EXPECT_TRUE(a.ok) << a.why;
    EXPECT_GT(a.rel_l2, 0.02);
    EXPECT_LT(a.rel_l2, 0.035);
  }
}

TEST(CublasltPlain, ItsCeilingsAreNotBlind) {
  const auto device = open_host_device();
  for (Params params : kFoldedCases) {
    DenseFc2 problem(*device, dense_fc2_case(params));
    multiply_folded(problem);
    problem.check_with({kTolerance, kBetween});  // the controls are judged by what was last
    params["seed"] = "2";
    DenseFc2 other(*device, dense_fc2_case(params));
    multiply_folded(other);
    const auto controls = negative_controls(problem, other);
    EXPECT_EQ(blind_spots(controls), "") << dense_fc2_case(params).key();
    const auto rejected = std::count_if(controls.begin(), controls.end(), [](const Control& c) {
      return c.outcome == ControlOutcome::rejected;
    });
    EXPECT_GE(rejected, 6);
  }
}

#ifdef MOEGATE_HAS_CUDA

class CudaCublasltPlain : public check::CudaVariants {};

// Rows: one, odd, around a tile, more than one; one expert, a few, the PR's.
TEST_F(CudaCublasltPlain, AgreesWithTheTruth) {
  std::vector<Params> cases = kFoldedCases;
  for (const char* tokens : {"1", "2", "7", "15", "16", "17", "127", "128", "129", "300"}) {
    cases.push_back({{"tokens", tokens}, {"hidden", "272"}});
  }
  cases.push_back({{"tokens", "64"}, {"experts", "256"}, {"topk", "8"}, {"hidden", "7168"}});
  for (const Params& params : cases) {
    const Case c = dense_fc2_case(params);
    Bench bench(*device_, c);
    const Variant& variant = find_variant(c.op, Backend::cuda, "cublaslt_plain");
    Result result = bench.verify(variant);
    EXPECT_TRUE(result.status == Status::ok || !variant.unsupported(c, device_->facts()).empty())
        << c.key() << ": " << result.why;
    if (result.status != Status::ok) continue;
    bench.control(result);
    EXPECT_EQ(result.status, Status::ok) << c.key() << ": " << result.why;
  }
}

TEST(CublasltPlainEligibility, NamesWhatDoesNotFit) {
  const auto refusal = [](const Params& params) {
    const Case c = dense_fc2_case(params);
    return find_variant(c.op, Backend::cuda, "cublaslt_plain").unsupported(c, DeviceFacts{});
  };
  EXPECT_NE(refusal({{"scales", "block"}}).find("scales = block"), std::string::npos);
  EXPECT_NE(refusal({{"alphas", "edges"}}).find("alphas = edges"), std::string::npos);
  EXPECT_NE(refusal({{"hidden", "264"}}).find("hidden = 264"), std::string::npos);
  // Where there is no cuBLASLt it says so; no other reason is left.
  const std::string fits = refusal({{"hidden", "272"}});
  EXPECT_TRUE(fits.empty() || fits.find("no cuBLASLt") == 0) << fits;
}

#endif

}  // namespace
}  // namespace moegate::dense_fc2::cublaslt
