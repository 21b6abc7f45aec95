// SPDX-License-Identifier: Apache-2.0
// Bench with variants made up on the spot, of an operator that exists: what it does before their
// first launch, and by which tolerance it judges them.
#include <gtest/gtest.h>

#include <set>

#include "harness/device/open.h"
#include "harness/kernel/only_tensor_fixture.h"
#include "harness/worker/measure.h"

namespace moegate::test {
namespace {

constexpr const char* kSmallOp = "qmoe_fc2";

Case case_of_small_op() {
  Case c{"test", "small", kSmallOp, {}, {}};
  for (const Param& p : find_op(kSmallOp).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  for (const auto& [name, value] : {std::pair{"tokens", "2"},
                                    {"experts", "4"},
                                    {"topk", "2"},
                                    {"hidden", "32"},
                                    {"inter", "64"}})
    c.params[name] = value;
  return c;
}

class VerifyTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
  Bench bench_{*device_, case_of_small_op()};
  Variant variant_ = find_variant(kSmallOp, Backend::host, "single");
};

TEST_F(VerifyTest, PreparesEveryProblemBeforeItsFirstLaunch) {
  std::set<Problem*> prepared;
  variant_.prepare = [&](Problem& problem, const Launch&) { prepared.insert(&problem); };
  variant_.launch = [&, launch = variant_.launch](Problem& problem, const Launch& where) {
    EXPECT_EQ(prepared.count(&problem), 1u);
    launch(problem, where);
  };
  const Result result = bench_.verify(variant_);
  EXPECT_EQ(result.status, Status::ok) << result.why;
  EXPECT_EQ(prepared.size(), result.seeds.size());
  EXPECT_GE(prepared.size(), 2u);
}

TEST_F(VerifyTest, ALaunchFindsWhatWasPackedForItsProblem) {
  variant_.prepare = [](Problem& problem, const Launch&) {
    problem.packed("copy", 1, [](Tensor& to) { to.fill(3); });
  };
  int launches = 0;
  variant_.launch = [&, launch = variant_.launch](Problem& problem, const Launch& where) {
    launches += problem.packed("copy").download<uint8_t>()[0] == 3;
    launch(problem, where);
  };
  const Result result = bench_.verify(variant_);
  EXPECT_EQ(result.status, Status::ok) << result.why;
  EXPECT_EQ(launches, 1 + static_cast<int>(result.seeds.size())) << "the first problem twice";
}

TEST_F(VerifyTest, TheFactorOfAVariantWidensItsCeilingsOnly) {
  const Variant exact = variant_;
  variant_.launch = [launch = exact.launch](Problem& problem, const Launch& where) {
    launch(problem, where);
    Tensor& out = only(problem, Role::output);
    auto values = out.download<uint16_t>();
    for (uint16_t& v : values) v = float_to_f16(1.003f * f16_to_float(v));
    out.upload(values);
  };
  EXPECT_EQ(bench_.verify(variant_).status, Status::wrong) << "the operator's are about 0.1 %";
  variant_.leeway.factor = 10;
  const Result wide = bench_.verify(variant_);
  EXPECT_EQ(wide.status, Status::ok) << wide.why;
  variant_.leeway.factor = 1;
  EXPECT_EQ(bench_.verify(variant_).status, Status::wrong) << "the next variant's own again";
  EXPECT_EQ(bench_.verify(exact).status, Status::ok);
}

TEST_F(VerifyTest, APackInALaunchIsRefusedAndNoCrash) {
  variant_.launch = [launches = 0, launch = variant_.launch](Problem& problem,
                                                             const Launch& where) mutable {
    if (++launches == 3) problem.packed("plan", 64, [](Tensor& to) { to.fill(1); });
    launch(problem, where);
  };
  const Result result = bench_.verify(variant_);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_NE(result.why.find("packs 'plan' in a launch"), std::string::npos) << result.why;
  EXPECT_TRUE(bench_.spoilt()) << "the next variant gets problems that remember nothing";
}

/// Eight numbers of which the truth is -1, as an index that there is not.
class Nowhere final : public Problem {
 public:
  explicit Nowhere(Device& device) : Problem(device) {}
  Checked check() const override {
    const auto out = out_.download<int32_t>();
    return {{compare_exact("out", out, std::vector<int32_t>(8, -1))}, hash_bytes(out.data(), 32)};
  }
  Corruptions corruptions() override {
    const auto none = Corruption::not_applicable("a test");
    return {none, none, none};
  }
  Cost cost() const override { return {}; }

 private:
  Tensor& out_ = make_tensor("out", Role::output, DType::i32, {8});
};

TEST_F(VerifyTest, WhatIsRightBecauseItWasPoisonedIsSeen) {
  Registry registry = own_registry();
  for (OpEntry& op : registry.ops) {
    if (op.name != kSmallOp) continue;
    op.make = [](Device& device, const Case&) { return std::make_unique<Nowhere>(device); };
  }
  Bench bench(*device_, case_of_small_op(), registry);
  variant_.workspace = nullptr;
  variant_.launch = [](Problem&, const Launch&) {};
  EXPECT_EQ(bench.verify(variant_).status, Status::wrong) << "it wrote nothing";
  variant_.launch = [](Problem& problem, const Launch&) { only(problem, Role::output).fill(0xff); };
  Result result = bench.verify(variant_);
  EXPECT_EQ(result.status, Status::ok) << result.why;
  bench.check_unseen(variant_, result);
  EXPECT_EQ(result.status, Status::ok);
  EXPECT_EQ(result.metrics.back().name, kUnseenMetric);
  EXPECT_EQ(result.metrics.back().value, 0) << "there are no activations, and the row says so";
}

TEST_F(VerifyTest, WhatIsRightForTheInputsOfTheCaseOnlyIsWrong) {
  int launches = 0;
  variant_.launch = [&, launch = variant_.launch](Problem& problem, const Launch& where) {
    launch(problem, where);
    if (launches++ > 8) only(problem, Role::output).data<uint16_t>()[0] ^= 0x4000;
  };
  Result result = bench_.verify(variant_);
  ASSERT_EQ(result.status, Status::ok) << result.why;
  bench_.check_unseen(variant_, result);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_TRUE(result.why.starts_with("on activations that it never saw: out: ")) << result.why;
}

TEST_F(VerifyTest, WarmSamplesRepeatOneProblem) {
  std::set<Problem*> launched;
  variant_.launch = [&, launch = variant_.launch](Problem& problem, const Launch& where) {
    launched.insert(&problem);
    launch(problem, where);
  };
  const auto problems_of = [&](Cache cache) {
    Result result = bench_.verify(variant_);
    launched.clear();
    Conditions conditions;
    conditions.cache = cache;
    bench_.measure(variant_, *make_host_timer(*device_), conditions,
                   {.min_samples = 20, .max_samples = 20, .budget_s = 0.05}, result);
    return launched.size();
  };
  EXPECT_EQ(problems_of(Cache::warm), 1u) << "several would take each other's place in the cache";
  EXPECT_GE(problems_of(Cache::cold), 2u);
}

}  // namespace
}  // namespace moegate::test
