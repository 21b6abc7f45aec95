// SPDX-License-Identifier: Apache-2.0
// The host variants against the truth, through the verification that the harness uses, and each
// instruction set that this processor has against the others.
#include <gtest/gtest.h>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/qmoe/host/dot.h"
#include "kernels/qmoe/qmoe_testing.h"

namespace moegate::qmoe {
namespace {

/// Verifies all host variants; returns the path that each took.
template <class P>
std::map<std::string, std::string> verify_all(Device& device, const Params& params) {
  std::map<std::string, std::string> paths;
  Bench bench(device, qmoe_case<P>(params));
  for (const Variant& v : all_variants()) {
    if (v.op != P::kOp || v.backend != Backend::host) continue;
    const Result result = bench.verify(v);
    EXPECT_EQ(result.status, Status::ok) << v.op << " " << v.name << ": " << result.why;
    paths[v.name] = result.path;
  }
  return paths;
}

// Sizes that are no multiple of a vector, a tile or a panel, and up to 21 rows of one expert.
const std::vector<Params> kCases = {
    {{"hidden", "2"}, {"inter", "2"}},
    {{"hidden", "70"}, {"inter", "26"}, {"bias", "1"}},
    {{"hidden", "162"}, {"inter", "38"}, {"dtype", "bf16"}},
    {{"routing", "hot:3:1"}, {"scale-block", "32"}, {"values", "edges"}, {"bias", "1"}},
    {{"routing", "hot:3:1"}, {"tokens", "21"}, {"scale-block", "64"}, {"dtype", "bf16"}},
    {{"hidden", "1000"}, {"inter", "504"}, {"tokens", "2"}}};

template <class P>
class QmoeHost : public ::testing::Test {};
using Operators = ::testing::Types<QmoeFc1, QmoeFc2>;
TYPED_TEST_SUITE(QmoeHost, Operators);

TYPED_TEST(QmoeHost, VariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  for (const Params& params : kCases) verify_all<TypeParam>(*device, params);
}

TYPED_TEST(QmoeHost, EveryInstructionSetAgreesWithTheTruth) {
  const auto device = open_host_device();
  for (const Params& params : kCases) {
    for (const host::Isa* isa : host::isas()) {
      TypeParam problem(*device, qmoe_case<TypeParam>(params));
      problem.reserve_workspace(host::widened_bytes(problem.shape));
      problem.poison();
      host::launch_single(*isa, {problem.args(), problem.template workspace<float>()});
      const Accuracy accuracy = problem.check().accuracy[0];
      EXPECT_TRUE(accuracy.ok) << isa->name << ": " << accuracy.why;
      EXPECT_EQ(problem.broken_guard(), "") << isa->name;
    }
  }
}

TEST(QmoeSplitK2, FallsBackWhereKCannotBeCut) {
  const auto device = open_host_device();
  const auto path = [&](const Params& params) {
    return verify_all<QmoeFc1>(*device, params)["split_k2"];
  };
  const std::string isa = host::best_isa().name;
  EXPECT_EQ(path({{"hidden", "62"}}), "fallback: single, " + isa);
  EXPECT_EQ(path({{"hidden", "32"}, {"scale-block", "32"}}), "fallback: single, " + isa);
  EXPECT_EQ(path({{"hidden", "64"}}), isa);
  EXPECT_EQ(path({{"hidden", "96"}, {"scale-block", "32"}}), isa);  // halves of two groups and one
}

}  // namespace
}  // namespace moegate::qmoe
