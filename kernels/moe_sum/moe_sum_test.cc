// SPDX-License-Identifier: Apache-2.0
// The truth against an answer worked out by hand, what check() takes and rejects, and the host
// variants against the truth through the same verification that the harness uses.
#include "kernels/moe_sum/moe_sum.h"

#include <gtest/gtest.h>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/moe_sum/host_sum.h"
#include "kernels/moe_sum/moe_sum_testing.h"

namespace moegate::moe_sum {
namespace {

TEST(MoeSumTruth, AddsTheRowsOfAToken) {
  std::vector<uint16_t> y;
  for (const float value : {1.0f, 2.0f, -3.0f, 0.5f, 8.0f, 16.0f, 0.25f, -1.0f}) {
    y.push_back(float_to_bf16(value));
  }
  const MoeSumShape shape{.tokens = 2, .topk = 2, .hidden = 2, .scale = 2.5f};
  EXPECT_EQ(moe_sum_truth(y, shape), (std::vector<double>{-5, 6.25, 20.625, 37.5}));
}

bool ok(const MoeSum& problem) {
  return problem.check().accuracy[0].ok;
}

TEST(MoeSum, ChecksTheWholeAndASample) {
  const auto device = open_host_device();
  for (const int64_t most : {MoeSum::kWholeTruth, int64_t{0}}) {
    MoeSum problem(*device, moe_sum_case({{"tokens", "300"}, {"scale", "2.5"}}), most);
    problem.poison();
    run_per_token(problem.args());
    ASSERT_TRUE(ok(problem));
    uint16_t* out = problem.args().out;
    for (int i = 0; i < 300 * 64; i += 37) {
      const uint16_t right = out[i];
      out[i] = 0xffff;
      EXPECT_FALSE(ok(problem)) << i;
      out[i] = right;
    }
    EXPECT_TRUE(ok(problem));
    const Corruptions corruptions = problem.corruptions();
    for (const Corruption* c : {&corruptions.experts_swapped, &corruptions.token_dropped}) {
      run_per_token(problem.args());
      c->apply();
      EXPECT_FALSE(ok(problem));
    }
  }
}

TEST(MoeSum, CostAndParameters) {
  const auto device = open_host_device();
  const MoeSum problem(*device, moe_sum_case({}));
  EXPECT_EQ(problem.cost().read_bytes, 15 * 64 * 2);
  EXPECT_EQ(problem.cost().write_bytes, 5 * 64 * 2);
  EXPECT_THROW(MoeSum::validate(moe_sum_case({{"topk", "17"}})), Error);
  EXPECT_THROW(MoeSum::validate(moe_sum_case({{"scale", "0"}})), Error);
}

TEST(MoeSum, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  for (const char* topk : {"1", "2", "9"}) {
    for (const char* hidden : {"100", "511", "513", "1100"}) {
      Bench bench(*device, moe_sum_case({{"topk", topk}, {"hidden", hidden}, {"scale", "2.5"}}));
      for (const Variant& v : all_variants()) {
        if (v.op != MoeSum::kOp || v.backend != Backend::host) continue;
        const Result result = bench.verify(v);
        EXPECT_EQ(result.status, Status::ok)
            << topk << " " << hidden << " " << v.name << ": " << result.why;
      }
    }
  }
}

}  // namespace
}  // namespace moegate::moe_sum
