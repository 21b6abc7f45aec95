// SPDX-License-Identifier: Apache-2.0
// The host variants against the truth, through the verification that the harness uses, and each
// instruction set that this processor has against the others.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm {
namespace {

// Ragged tiles of N, one group of K (nothing for a second chunk) and three, blocks that hold more
// rows than a panel, blocks of one row, K that ends within a group, also where factors follow sums.
const std::vector<Params> kCases = {
    {},
    {{"hidden", "128"}, {"inter", "128"}, {"tokens", "1"}},
    {{"hidden", "384"}, {"inter", "384"}, {"block", "1"}},
    {{"tokens", "70"}, {"routing", "hot:3:1"}, {"block", "64"}},
    {{"tokens", "33"}, {"routing", "zipf:1.2"}, {"block", "5"}},
    {{"hidden", "70"}, {"inter", "38"}, {"dtype", "bf16"}},
    {{"hidden", "300"}, {"inter", "141"}, {"dtype", "bf16"}, {"routing", "hot:3:1"}},
    {{"hidden", "208"}, {"inter", "80"}, {"scaling", "channel"}, {"tokens", "33"}},
    {{"hidden", "16"}, {"inter", "400"}, {"scaling", "tensor"}, {"routing", "zipf:1.2"}},
    {{"hidden", "300"}, {"inter", "141"}, {"dtype", "bf16"}, {"bias", "1"}},
    {{"hidden", "208"}, {"inter", "80"}, {"scaling", "channel"}, {"bias", "1"}},
    {{"hidden", "400"}, {"inter", "16"}, {"scaling", "tensor"}, {"bias", "1"}, {"rank", "1/4"}},
    {{"dtype", "int8"}, {"hidden", "208"}, {"inter", "80"}, {"scaling", "channel"}},
    {{"dtype", "int8"}, {"hidden", "16"}, {"inter", "400"}, {"scaling", "tensor"}},
    {{"dtype", "int8"}, {"hidden", "400"}, {"inter", "16"}, {"scaling", "channel"}, {"bias", "1"}},
    {{"dtype", "int8"}, {"hidden", "208"}, {"scaling", "tensor"}, {"bias", "1"}, {"rank", "1/4"}}};

/// N of the operator is 190 where it may be ragged without K being so.
template <class P>
Case ragged(Params params) {
  const bool down = std::is_same_v<P, MoeDown>;
  if (!params.contains("dtype")) params[down ? "hidden" : "inter"] = down ? "190" : "95";
  return moe_gemm_case<P>(params);
}

template <class P>
class MoeGemmHost : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};
using Operators = ::testing::Types<MoeGateUp, MoeDown>;
TYPED_TEST_SUITE(MoeGemmHost, Operators);

TYPED_TEST(MoeGemmHost, VariantsAgreeWithTheTruth) {
  for (const Params& params : kCases) {
    const Case c = ragged<TypeParam>(params);
    Bench bench(*this->device_, c);
    for (const Variant& v : all_variants()) {
      if (v.op != c.op || v.backend != Backend::host) continue;
      const Result result = bench.verify(v);
      EXPECT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
    }
  }
}

TYPED_TEST(MoeGemmHost, EveryInstructionSetAgreesWithTheTruth) {
  for (const Params& params : kCases) {
    for (const host::Isa* isa : host::isas()) {
      TypeParam problem(*this->device_, ragged<TypeParam>(params));
      problem.reserve_workspace(host::widened_bytes(problem.shape));
      problem.poison();
      host::launch_panels({problem.args(), *isa, problem.template workspace<float>()});
      const Accuracy accuracy = problem.check().accuracy[0];
      EXPECT_TRUE(accuracy.ok) << isa->name << ": " << accuracy.why;
      EXPECT_EQ(problem.broken_guard(), "") << isa->name;
    }
  }
}

// Sums of int8 are exact: the order in which they are added up does not show.
TEST(MoeGemmInt8, EveryInstructionSetHasTheSameBits) {
  const auto device = open_host_device();
  MoeDown problem(*device, large_sums_case());
  give_large_sums(*device, problem);
  problem.reserve_workspace(host::widened_bytes(problem.shape));
  std::set<uint64_t> hashes;
  for (const host::Isa* isa : host::isas()) {
    problem.poison();
    host::launch_panels({problem.args(), *isa, problem.workspace<float>()});
    const Checked checked = problem.check();
    EXPECT_TRUE(checked.accuracy[0].ok) << isa->name << ": " << checked.accuracy[0].why;
    hashes.insert(checked.hash);
  }
  EXPECT_EQ(hashes.size(), 1u);
}

// Both ways of applying scale factors, on every instruction set, differ by roundings of fp32 alone.
TYPED_TEST(MoeGemmHost, ScalingsAgree) {
  using namespace host;
  for (const Isa* isa : isas()) {
    TypeParam problem(*this->device_, ragged<TypeParam>({{"tokens", "33"}}));
    problem.reserve_workspace(widened_bytes(problem.shape));
    const Operands operands = {problem.args(), *isa, problem.template workspace<float>()};
    widen_source_rows(operands);
    for_panels(operands, [&](const Panel& panel) {
      float per_column[kPanelRows * kPanelColumns], per_tile[kPanelRows * kPanelColumns];
      isa->multiply(panel, Scaling::per_column, per_column);
      isa->multiply(panel, Scaling::per_tile, per_tile);
      for (int i = 0; i < panel.rows * panel.columns; ++i) {
        ASSERT_NEAR(per_column[i], per_tile[i], 1e-5) << isa->name;
      }
    });
  }
}

TEST(MoeGemmIsa, EveryCodeIsDecodedToItsValue) {
  std::vector<uint8_t> codes(256);
  for (int i = 0; i < 256; ++i) codes[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  constexpr size_t kOne = 0x38;
  for (const host::Isa* isa : host::isas()) {
    std::vector<float> wide(256);
    isa->widen(DType::e4m3, codes.data(), 256, wide.data());
    for (size_t i = 0; i < 256; ++i) {
      if ((i & 0x7f) == 0x7f) continue;  // NaN, which operands never hold
      EXPECT_EQ(wide[i] / wide[kOne], e4m3_to_float(codes[i])) << isa->name << " " << i;
      EXPECT_EQ(std::signbit(wide[i]), i >= 128) << isa->name << " " << i;
    }
    isa->widen(DType::i8, codes.data(), 256, wide.data());
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(wide[i], static_cast<int8_t>(codes[i])) << isa->name << " " << i;
    }
  }
}

// What the two chunks cost: three roundings to bf16 instead of one.
TEST(MoeGemmSplitK2, RoundsMoreThanItsFp32Form) {
  const auto device = open_host_device();
  const Case c = moe_gemm_case<MoeGateUp>({{"hidden", "1024"}});
  MoeGateUp problem(*device, c);
  const auto error = [&](const char* variant) {
    check::launch_host_variant(problem, c, variant);
    return problem.check().accuracy[0].rel_l2;
  };
  const double gather = error("gather");
  EXPECT_NEAR(error("split_k2_fp32") / gather, 1, 0.01);
  EXPECT_GT(error("split_k2") / gather, 1.2);
  EXPECT_LT(error("split_k2") / gather, 1.75);
}

}  // namespace
}  // namespace moegate::moe_gemm
