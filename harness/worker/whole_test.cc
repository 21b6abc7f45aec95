// SPDX-License-Identifier: Apache-2.0
// One wrong row in an output of which the check sees a sample: caught wherever it is, blamed on who
// is wrong. Sampling is forced upon small cases.
#include "harness/worker/whole.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/worker/measure.h"
#include "kernels/check/sampled_rows.h"
#include "kernels/check/testing.h"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_sum/moe_sum.h"

namespace moegate::test {
namespace {

using LaunchFn = std::function<void(Problem&, const Launch&)>;
using Bits = std::vector<uint16_t>;

constexpr int64_t kTokens = 1500, kHidden = 24;  // of sum_case()
constexpr int64_t kRows = 80, kColumns = 512;    // of gate_up_case()

Case sum_case() {
  return check::case_of("moe_sum", {{"tokens", "1500"}, {"topk", "2"}, {"hidden", "24"}});
}
Case gate_up_case() {
  return check::case_of(
      "moe_gate_up",
      {{"tokens", "40"}, {"experts", "8"}, {"topk", "2"}, {"hidden", "256"}, {"inter", "256"}});
}

/// This program's registry, with operators that sample whatever the size.
Registry sampling_registry() {
  Registry registry = own_registry();
  for (OpEntry& op : registry.ops) {
    if (op.name == "moe_sum") {
      op.make = [](Device& device, const Case& c) {
        return std::make_unique<moe_sum::MoeSum>(device, c, 0);
      };
    }
    if (op.name == "moe_gate_up") {
      op.make = [](Device& device, const Case& c) {
        return std::make_unique<moe_gemm::MoeGateUp>(device, c, 0);
      };
    }
  }
  return registry;
}

Variant& variant_of(Registry& registry, const std::string& op, Backend backend,
                    const std::string& name) {
  for (Variant& v : registry.variants) {
    if (v.op == op && v.backend == backend && v.name == name) return v;
  }
  throw Error(Exit::internal, "no variant " + name);
}

/// Launches `honest`, then spoils its first output.
LaunchFn spoiling(const LaunchFn& honest, const std::function<void(Problem&, Bits&)>& spoil) {
  return [=](Problem& problem, const Launch& where) {
    honest(problem, where);
    problem.device().synchronize();
    for (Tensor* tensor : problem.tensors()) {
      if (tensor->role() != Role::output) continue;
      auto bits = tensor->download<uint16_t>();
      spoil(problem, bits);
      tensor->upload(bits);
    }
  };
}

/// Row `row` of `width` is zeros.
LaunchFn zeroing(const LaunchFn& honest, int64_t row, int64_t width) {
  return spoiling(honest, [=](Problem&, Bits& bits) {
    std::fill_n(bits.begin() + row * width, width, uint16_t{0});
  });
}

double metric(const Result& result, const std::string& name) {
  for (const Metric& m : result.metrics) {
    if (m.name == name) return m.value;
  }
  return -1;
}

class WholeTest : public ::testing::Test {
 protected:
  Variant& variant(const std::string& op, const std::string& name) {
    return variant_of(registry_, op, Backend::host, name);
  }
  std::unique_ptr<Device> device_ = open_host_device();
  Registry registry_ = sampling_registry();
};

TEST_F(WholeTest, HonestVariantsPassWhole) {
  for (const Case& c : {sum_case(), gate_up_case()}) {
    Bench bench(*device_, c, registry_, {.sample_seed = 5, .another_set = true});
    for (const Variant& v : registry_.variants) {
      if (v.op != c.op || v.backend != Backend::host) continue;
      const Result result = bench.verify(v);
      if (result.status == Status::unsupported) continue;
      EXPECT_EQ(result.status, Status::ok) << v.name << ": " << result.why;
      EXPECT_EQ(metric(result, "outputs_compared"), 1) << v.name;
      EXPECT_LT(metric(result, "whole_row"), 0.02) << v.name;
    }
  }
}

/// A token of sum_case() that check() looks at in none of the problem sets.
int64_t unseen_token() {
  for (int64_t token = 1; token < kTokens; ++token) {
    bool seen = false;
    for (size_t set = 0; set < 8; ++set) {
      const auto seed = static_cast<uint64_t>(seed_of_set(sum_case(), set));
      const auto tokens = check::sampled_rows(kTokens, moe_sum::MoeSum::kSampledTokens, seed);
      seen = seen || std::ranges::count(tokens, token) > 0;
    }
    if (!seen) return token;
  }
  throw Error(Exit::internal, "every token is seen in some set");
}

TEST_F(WholeTest, AZeroedTokenIsCaughtWhereverItIs) {
  Bench bench(*device_, sum_case(), registry_);
  Variant blocked = variant("moe_sum", "blocked");
  const LaunchFn honest = blocked.launch;
  for (int64_t token = 0; token < kTokens; token += 7) {
    blocked.launch = zeroing(honest, token, kHidden);
    ASSERT_EQ(bench.verify(blocked).status, Status::wrong) << "token " << token;
  }
}

TEST_F(WholeTest, TheMessageNamesTheRowAndTheOtherVariant) {
  Bench bench(*device_, sum_case(), registry_);
  Variant blocked = variant("moe_sum", "blocked");
  blocked.launch = zeroing(blocked.launch, unseen_token(), kHidden);
  const Result result = bench.verify(blocked);
  EXPECT_NE(result.why.find(fmt::format("row {} ", unseen_token())), std::string::npos)
      << result.why;
  EXPECT_NE(result.why.find("variant per_token"), std::string::npos) << result.why;
}

TEST_F(WholeTest, WhatIsWrongInTimedLaunchesOnlyIsComparedWhole) {
  Bench bench(*device_, sum_case(), registry_);
  Variant blocked = variant("moe_sum", "blocked");
  const LaunchFn honest = blocked.launch, wrong = zeroing(honest, unseen_token(), kHidden);
  bool timed = false;
  blocked.launch = [&](Problem& problem, const Launch& where) {
    (timed ? wrong : honest)(problem, where);
  };
  Result result = bench.verify(blocked);
  ASSERT_EQ(result.status, Status::ok) << result.why;
  timed = true;
  bench.measure(blocked, *make_host_timer(*device_), {},
                {.min_samples = 20, .max_samples = 20, .budget_s = 0.05}, result);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_NE(result.why.find("in timed launches"), std::string::npos) << result.why;
}

TEST_F(WholeTest, AWrongRowOfAGroupedGemmIsCaughtWhereverItIs) {
  Bench bench(*device_, gate_up_case(), registry_);
  Variant gather = variant("moe_gate_up", "gather");
  const LaunchFn honest = gather.launch;
  for (int64_t row = 0; row < kRows; row += 3) {
    gather.launch = zeroing(honest, row, kColumns);
    ASSERT_EQ(bench.verify(gather).status, Status::wrong) << "row " << row;
  }
}

TEST_F(WholeTest, AWrongTileOfAGroupedGemmIsCaughtWhereverItIs) {
  Bench bench(*device_, gate_up_case(), registry_);
  Variant gather = variant("moe_gate_up", "gather");
  const LaunchFn honest = gather.launch;
  for (int64_t column = 0; column < kColumns; column += 128) {
    gather.launch = spoiling(honest, [=](Problem&, Bits& bits) {
      for (int64_t row = kRows - 16; row < kRows; ++row) {
        for (int64_t c = column; c < column + 128; ++c) {
          bits[static_cast<size_t>(row * kColumns + c)] ^= 0x8000;
        }
      }
    });
    EXPECT_EQ(bench.verify(gather).status, Status::wrong) << "column " << column;
  }
}

TEST_F(WholeTest, OutputsInSortedOrderAreComparedRowByRow) {
  Bench bench(*device_, gate_up_case(), registry_);
  const Result honest = bench.verify(variant("moe_gate_up", "sorted_rows"));
  EXPECT_EQ(honest.status, Status::ok) << honest.why;
  EXPECT_EQ(metric(honest, "outputs_compared"), 1);
}

TEST_F(WholeTest, TheLastRowOfASampledExpertIsInTheTruthsSample) {
  const moe_gemm::MoeGemmShape shape = moe_gemm::MoeGateUp::shape_of(gate_up_case());
  std::vector<int32_t> experts;
  for (int r = 0; r < shape.rows(); ++r) experts.push_back(r * 5 % 8);
  const auto sample = moe_gemm::moe_gemm_sample(shape, experts, 7, 0);
  for (int e = 0; e < 8; ++e) {
    int last = 0;
    for (int r = 0; r < shape.rows(); ++r) last = experts[static_cast<size_t>(r)] == e ? r : last;
    EXPECT_EQ(std::ranges::count(sample.rows, last), 1) << "expert " << e;
  }
}

TEST_F(WholeTest, AWrongReferenceIsNotBlamedOnOthers) {
  Variant& per_token = variant("moe_sum", "per_token");
  const LaunchFn honest = per_token.launch;
  per_token.launch = zeroing(honest, unseen_token(), kHidden);
  Bench bench(*device_, sum_case(), registry_);
  const Result blocked = bench.verify(variant("moe_sum", "blocked"));
  EXPECT_EQ(blocked.status, Status::ok) << blocked.why;
  EXPECT_LT(metric(blocked, "outputs_compared"), 1) << "there is no other";
  const Result wrong = bench.verify(per_token);
  EXPECT_EQ(wrong.status, Status::wrong);
  EXPECT_NE(wrong.why.find("variant blocked"), std::string::npos) << wrong.why;
}

TEST_F(WholeTest, AVariantWithoutAnotherSaysSo) {
  std::erase_if(registry_.variants, [](const Variant& v) {
    return v.op == "moe_sum" && v.backend == Backend::host && v.name != "per_token";
  });
  Bench bench(*device_, sum_case(), registry_);
  const Result result = bench.verify(variant("moe_sum", "per_token"));
  EXPECT_EQ(result.status, Status::ok) << result.why;
  EXPECT_GT(metric(result, "outputs_compared"), 0);
  EXPECT_LT(metric(result, "outputs_compared"), 1);
}

TEST_F(WholeTest, WhatAllVariantsAreWrongInIsFoundByADrawnSample) {
  for (Variant& v : registry_.variants) {
    if (v.op == "moe_sum") v.launch = zeroing(v.launch, unseen_token(), kHidden);
  }
  const Variant& blocked = variant("moe_sum", "blocked");
  EXPECT_EQ(Bench(*device_, sum_case(), registry_).verify(blocked).status, Status::ok);
  std::string why;
  for (uint64_t seed = 1; seed < 200 && why.empty(); ++seed) {
    why = Bench(*device_, sum_case(), registry_, {.sample_seed = seed}).verify(blocked).why;
  }
  EXPECT_NE(why.find(fmt::format("row {}:", unseen_token())), std::string::npos) << why;
  EXPECT_NE(why.find("--sample-seed"), std::string::npos) << why;
}

TEST_F(WholeTest, TheSampleSeedDrawsRowsAndASet) {
  Bench plain(*device_, sum_case(), registry_);
  Bench drawn(*device_, sum_case(), registry_, {.sample_seed = 20261122, .another_set = true});
  Bench other(*device_, sum_case(), registry_, {.sample_seed = 20261123, .another_set = true});
  const Variant& v = variant("moe_sum", "blocked");
  const auto seeds = [&](Bench& bench) { return bench.verify(v).seeds; };
  const auto of_plain = seeds(plain), of_drawn = seeds(drawn), of_other = seeds(other);
  ASSERT_EQ(of_drawn.size(), of_plain.size() + 1);
  for (size_t i = 0; i < of_plain.size(); ++i) {
    EXPECT_EQ(of_drawn[i].seed, of_plain[i].seed) << "accuracy is compared by these";
    EXPECT_EQ(of_drawn[i].rel_l2, of_plain[i].rel_l2);
  }
  EXPECT_NE(of_drawn.back().seed, of_other.back().seed);
  moe_sum::MoeSum problem(*device_, sum_case(), 0);
  EXPECT_EQ(drawn_rows(problem, 3), drawn_rows(problem, 3));
  EXPECT_NE(drawn_rows(problem, 3), drawn_rows(problem, 4));
  EXPECT_EQ(drawn_rows(problem, 3).size(), 16u);
}

class WholeCudaTest : public check::CudaVariants {};

TEST_F(WholeCudaTest, HonestVariantsPassAndAWrongRowIsCaught) {
  Registry registry = sampling_registry();
  for (const Case& c : {sum_case(), gate_up_case()}) {
    const int64_t width = c.op == "moe_sum" ? kHidden : kColumns;
    Bench bench(*device_, c, registry, {.sample_seed = 5, .another_set = true});
    for (const Variant& v : registry.variants) {
      if (v.op != c.op || v.backend != Backend::cuda) continue;
      const Result result = bench.verify(v);
      if (result.status == Status::unsupported) continue;
      EXPECT_EQ(result.status, Status::ok) << v.name << ": " << result.why;
      EXPECT_EQ(metric(result, "outputs_compared"), 1) << v.name;
      Variant wrong = v;
      for (const int64_t row : {0, 17, 53, 79}) {
        wrong.launch = zeroing(v.launch, row, width);
        EXPECT_EQ(bench.verify(wrong).status, Status::wrong) << v.name << " row " << row;
      }
    }
  }
}

}  // namespace
}  // namespace moegate::test
