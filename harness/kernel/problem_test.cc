// SPDX-License-Identifier: Apache-2.0
// What a Problem keeps for its variants: packed weights, workspace, the tolerance of the one at
// work.
#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "harness/kernel/check.h"
#include "harness/kernel/kernel.h"

namespace moegate::test {
namespace {

/// y is 100 numbers of which the truth is 1.
class Ones final : public Problem {
 public:
  explicit Ones(Device& device)
      : Problem(device), y_(make_tensor("y", Role::output, DType::f32, {100})) {}
  Checked check() const override {
    const auto y = y_.download<float>();
    const std::vector<double> truth(y.size(), 1);
    return {{compare_floats("y", y, truth, 10, ceilings(kTolerance), kFp32)}, 0};
  }
  Corruptions corruptions() override {
    const auto none = Corruption::not_applicable("a test");
    return {none, none, none};
  }
  Cost cost() const override { return {}; }
  bool accepts(float value, double tolerance = 1) {
    y_.upload(std::vector<float>(100, value));
    return check_with({tolerance}).accuracy[0].ok;
  }

 private:
  static constexpr Tolerance kTolerance{
      .rtol = 1e-2, .atol = 0, .rel_l2 = 1e-2, .row = 1e-2, .scale = 1e-2};
  Tensor& y_;
};

class ProblemTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
  Ones problem_{*device_};
};

TEST_F(ProblemTest, PacksALayoutOnceForAllThatNameIt) {
  int packs = 0;
  const auto pack = [&](Tensor& to) {
    ++packs;
    to.upload(std::vector<uint8_t>{1, 2, 3});
  };
  Tensor& first = problem_.packed("interleaved", 3, pack);
  EXPECT_EQ(&problem_.packed("interleaved", 3, pack), &first);
  EXPECT_EQ(&problem_.packed("interleaved"), &first);
  EXPECT_NE(&problem_.packed("transposed", 3, pack), &first);
  EXPECT_EQ(packs, 2);
  EXPECT_EQ(first.download<uint8_t>(), (std::vector<uint8_t>{1, 2, 3}));
}

TEST_F(ProblemTest, PackedWeightsAreWeights) {
  Tensor& packed = problem_.packed("interleaved", 3, [](Tensor& to) { to.fill(5); });
  EXPECT_EQ(packed.role(), Role::weight);
  problem_.poison();
  EXPECT_EQ(packed.download<uint8_t>(), std::vector<uint8_t>(3, 5)) << "not poisoned";
  EXPECT_EQ(problem_.broken_guard(), "");
  packed.data<char>()[3] ^= 1;
  EXPECT_EQ(problem_.broken_guard(), "interleaved") << "guarded like any tensor";
}

TEST_F(ProblemTest, ALayoutThatNobodyPackedIsNamed) {
  const std::string why = refusal_of([&] { problem_.packed("interleaved"); }, Exit::internal);
  EXPECT_NE(why.find("interleaved"), std::string::npos) << why;
}

TEST_F(ProblemTest, ToleranceIsOfTheVariantAtWork) {
  EXPECT_TRUE(problem_.accepts(1.009f));
  EXPECT_FALSE(problem_.accepts(1.02f));
  EXPECT_TRUE(problem_.accepts(1.045f, 5));
  EXPECT_FALSE(problem_.accepts(1.06f, 5));
  EXPECT_FALSE(problem_.accepts(1.02f));
}

TEST(Tolerance, WidensEveryLimit) {
  const Tolerance wide = Tolerance{1, 2, 3, 4, 5}.widened({10});
  EXPECT_EQ(wide.rtol, 10);
  EXPECT_EQ(wide.atol, 20);
  EXPECT_EQ(wide.rel_l2, 30);
  EXPECT_EQ(wide.row, 40);
  EXPECT_EQ(wide.scale, 50);
}

}  // namespace
}  // namespace moegate::test
