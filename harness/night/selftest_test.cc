// SPDX-License-Identifier: Apache-2.0
#include "harness/night/selftest.h"

#include <gtest/gtest.h>

#include "harness/campaign/campaign_fixture.h"

namespace moegate::test {
namespace {

class SaboteursTest : public CampaignTest {
 protected:
  SaboteursTest() {
    hello().variants[0].expected = {Status::wrong, "by the script"};  // fused
  }
  Hello& hello() { return fake_.program("").hello; }
  std::vector<TriedSaboteur> released() { return release_saboteurs(options_, fake_); }
};

TEST_F(SaboteursTest, EachHasAProcessOfItsOwn) {
  released();
  EXPECT_EQ(fake_.program("").processes, 5) << "one says what there is, then one for each row";
}

TEST_F(SaboteursTest, OneThatIsMeasuredWasMissed) {
  const auto all = released();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_FALSE(all[0].as_expected());
  EXPECT_TRUE(all[1].as_expected()) << "an honest one is measured";
  EXPECT_NE(render(saboteur_table(all), Format::md).find("MISSED"), std::string::npos);
}

TEST_F(SaboteursTest, ItsStatusAndItsReasonHaveToFit) {
  fake_.program("").touch = [](const Request& request, Result& result) {
    if (request.variant != "fused") return;
    result.status = Status::wrong;
    result.why = request.spec.get("rows") == "1" ? "wrong by the script" : "something else";
  };
  const auto all = released();
  EXPECT_TRUE(all[0].as_expected());
  EXPECT_FALSE(all[2].as_expected());
}

TEST(Selftest, LambdaIsASentence) {
  Calibration aa;
  aa.lambda = 3.96;
  const std::string noisy = lambda_text(aa);
  EXPECT_TRUE(noisy.starts_with("Lambda 3.96: equal sides differed 2.0 times as much as "))
      << noisy;
  EXPECT_NE(noisy.find("false alarms"), std::string::npos) << noisy;
  aa.lambda = 1.1;
  EXPECT_NE(lambda_text(aa).find("1 is right."), std::string::npos) << lambda_text(aa);
  aa.injected = 0.05;
  EXPECT_EQ(lambda_text(aa), "") << "its sides are not equal";
}

TEST_F(SaboteursTest, AProgramWithoutThemIsRefused) {
  hello().variants[0].expected = {};
  EXPECT_THROW(released(), Error);
}

}  // namespace
}  // namespace moegate::test
