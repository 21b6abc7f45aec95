// SPDX-License-Identifier: Apache-2.0
// The host variants of dense_fc2 against the truth, through the verification that the harness uses,
// on every instruction set, and with activations that must not matter.
#include <gtest/gtest.h>

#include "harness/device/open.h"
#include "kernels/dense_fc2/dense_fc2_testing.h"
#include "kernels/dense_fc2/host/dense.h"

namespace moegate::dense_fc2 {
namespace {

const std::vector<std::string> kNames = {"alpha_per_k_tile", "alpha_per_expert", "sparse_rows"};

// One to three steps of K per expert; H within a unit of 64, one more than it, over a group of 128
// that ends ragged; rows: one, a panel's 16 and one more, more of two experts or of one than are
// widened at once; one expert; experts without rows; rows without experts.
const std::vector<Params> kCases = {
    {},
    {{"tokens", "1"}, {"inter", "128"}, {"hidden", "27"}},
    {{"tokens", "16"}, {"inter", "384"}, {"hidden", "65"}},
    {{"tokens", "17"}, {"hidden", "200"}, {"alphas", "edges"}},
    {{"tokens", "90"}, {"hidden", "70"}},
    {{"tokens", "5"}, {"experts", "1"}, {"topk", "1"}},
    {{"tokens", "127"}, {"experts", "12"}, {"topk", "1"}, {"routing", "hot:1:1"}},
    {{"tokens", "127"}, {"inter", "1024"}, {"hidden", "30"}, {"alphas", "edges"}}};

/// kCases with either form of scale factors.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (Params params : kCases) {
    for (const char* scales : {"tensor", "block"}) {
      params["scales"] = scales;
      cases.push_back(dense_fc2_case(params));
    }
  }
  return cases;
}

TEST(DenseFc2Host, VariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  for (const Case& c : all_cases()) {
    Bench bench(*device, c);
    for (const std::string& name : kNames) {
      const Result result = bench.verify(find_variant(c.op, Backend::host, name));
      EXPECT_EQ(result.status, Status::ok) << c.key() << " " << name << ": " << result.why;
    }
  }
}

TEST(DenseFc2Host, EveryInstructionSetAndNumberOfThreadsAgreesWithTheTruth) {
  using namespace host;
  const auto device = open_host_device();
  for (const Case& c : all_cases()) {
    DenseFc2 problem(*device, c);
    for (const moe_gemm::host::Isa* isa : isas()) {
      for (const int threads : {1, 3}) {
        problem.reserve_workspace(scratch_bytes(problem.shape, threads));
        problem.poison();
        run(problem.args(), {Rows::routed, AlphaPer::k_tile}, *isa, problem.workspace(), threads);
        const Accuracy accuracy = problem.check().accuracy[0];
        EXPECT_TRUE(accuracy.ok) << c.key() << " " << isa->name << ": " << accuracy.why;
        EXPECT_EQ(problem.broken_guard(), "") << isa->name;
      }
    }
  }
}

// Once per 128 or once per expert: roundings of fp32. Rows left out or multiplied by 0: none.
TEST(DenseFc2Host, LeavingRowsOutChangesNoBit) {
  const auto device = open_host_device();
  for (const Case& c : all_cases()) {
    DenseFc2 problem(*device, c);
    check::launch_host_variant(problem, c, "alpha_per_expert");
    const auto dense = std::vector<uint16_t>(
        problem.args().out,
        problem.args().out + int64_t{problem.shape.tokens} * problem.shape.hidden);
    check::launch_host_variant(problem, c, "sparse_rows");
    for (size_t i = 0; i < dense.size(); ++i) {
      ASSERT_EQ(bf16_to_float(problem.args().out[i]), bf16_to_float(dense[i])) << c.key() << i;
    }
  }
}

TEST(DenseFc2Host, ActivationsWithoutAlphaDoNotMatter) {
  const auto device = open_host_device();
  const Case c = dense_fc2_case({{"alphas", "edges"}, {"scales", "block"}});
  for (const std::string& name : kNames) {
    DenseFc2 problem(*device, c);
    check::launch_host_variant(problem, c, name);
    const uint64_t hash = problem.check().hash;
    const DenseFc2Args args = problem.args();
    const DenseFc2Shape& s = args.shape;
    int changed = 0;
    for (int64_t i = 0; i < int64_t{s.tokens} * s.k(); ++i) {
      if (args.alpha[i / s.inter] != 0) continue;
      const_cast<uint8_t*>(args.a)[i] = 0x7e;  // 448
      ++changed;
    }
    EXPECT_GT(changed, 0);
    check::launch_host_variant(problem, c, name);
    EXPECT_TRUE(problem.check().accuracy[0].ok) << name;
    EXPECT_EQ(problem.check().hash, hash) << name;
  }
}

}  // namespace
}  // namespace moegate::dense_fc2
