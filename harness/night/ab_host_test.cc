// SPDX-License-Identifier: Apache-2.0
// An A/B on a host, where a row is judged by its ratio to a yardstick unless that changed.
#include "harness/night/ab_fixture.h"

namespace moegate::test {
namespace {

/// Two programs on a host, whose operator has the yardstick "plain".
class HostAbTest : public AbTest {
 protected:
  HostAbTest() {
    for (FakeProgram* fake : {&base_, &head_}) {
      fake->hello.device.backend = Backend::host;
      fake->hello.operators[0].yardstick = "plain";
      for (VariantDescription& v : fake->hello.variants) v.backend = Backend::host;
      fake->spans = {{"plain", 1000}, {"fused", 500}};
      fake->codes = {{"plain", "01d"}, {"fused", "01df"}};
    }
  }
  /// Every host variant's code covers that of its yardstick.
  void change_yardstick() { head_.codes = {{"plain", "4e3"}, {"fused", "4e3f"}}; }
  Judgement judged(const std::string& variant) {
    Store kept = store();
    const Comparison result =
        run_ab(kept, prepare_ab(ab_, fake_), [](Backend) { return Limits::host(); });
    return result.decided.judged.at(id(variant));
  }

  FakeProgram& base_ = fake_.program(base_path_);
  FakeProgram& head_ = fake_.program("");
};

TEST_F(HostAbTest, ASlowedHelperSharedWithTheYardstickIsSeen) {
  change_yardstick();
  head_.spans = {{"plain", 3000}, {"fused", 1500}};
  EXPECT_EQ(judged("fused").outcome, Outcome::regressed);
  EXPECT_NEAR(judged("fused").effect, 2, 0.05);
  EXPECT_EQ(judged("plain").outcome, Outcome::regressed);
}

TEST_F(HostAbTest, AFasterYardstickFailsNobody) {
  change_yardstick();
  head_.spans["plain"] = 250;
  EXPECT_EQ(judged("fused").outcome, Outcome::pass);
  EXPECT_EQ(judged("plain").outcome, Outcome::improved);
}

TEST_F(HostAbTest, ASlowerYardstickImprovesNobody) {
  change_yardstick();
  head_.spans = {{"plain", 2000}, {"fused", 700}};
  EXPECT_EQ(judged("fused").outcome, Outcome::regressed);
}

TEST_F(HostAbTest, AnotherYardstickIsAnotherCondition) {
  head_.hello.operators[0].yardstick = "fused";
  head_.codes["plain"] = "4e3";  // covers the new one, too
  head_.codes["fused"] = "4e3f";
  EXPECT_EQ(judged("plain").outcome, Outcome::pass);
  EXPECT_EQ(judged("fused").outcome, Outcome::pass);
}

TEST_F(HostAbTest, AYardstickOfUnknownCodeIsNoConstant) {
  base_.codes = head_.codes = {};
  head_.spans = {{"plain", 3000}, {"fused", 1500}};
  EXPECT_EQ(judged("fused").outcome, Outcome::regressed);
}

TEST_F(HostAbTest, RatiosToTheSameYardstickAreCompared) {
  head_.codes["fused"] = "4e3f";
  head_.spans["fused"] = 1000;
  EXPECT_NEAR(judged("fused").effect, 1, 0.02);
  head_.spans = {{"plain", 2000}, {"fused", 1000}};  // a slower hour
  EXPECT_EQ(judged("fused").outcome, Outcome::pass);
}

TEST_F(HostAbTest, IdenticalCodeThatIsOffAndNoisyIsNotIdentical) {
  const auto noisy = [](const Request&, Result& result) {
    result.status = Status::noisy;
    result.why = "the machine was busy";
  };
  base_.touch = head_.touch = noisy;
  const auto verdict = [&] {
    Store kept = store();
    const Comparison result =
        run_ab(kept, prepare_ab(ab_, fake_), [](Backend) { return Limits::host(); });
    const Expectation base{"base", "", false, result.base};
    return judge(result.head, {{"s", base}}, {Limits::host(), true}, result.decided);
  };
  EXPECT_FALSE(verdict().counts.contains(Outcome::regressed));
  head_.spans["fused"] = 1000;
  const GateResult off = verdict();
  for (const CaseVerdict& v : off.cases) {
    if (v.id.variant != "fused") continue;
    EXPECT_NE(v.outcome, Outcome::identical) << v.why;
    EXPECT_NE(v.outcome, Outcome::pass) << v.why;
    EXPECT_TRUE(v.off);
  }
  EXPECT_NE(decide_exit(off, parse_fail_on("latency,changed"), false), Exit::ok);
}

}  // namespace
}  // namespace moegate::test
