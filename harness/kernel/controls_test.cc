// SPDX-License-Identifier: Apache-2.0
// The controls on a toy operator whose tolerance and hash are the test's to choose.
#include "harness/kernel/controls.h"
#include "harness/device/open.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace moegate::test {
namespace {

constexpr int64_t kRows = 4, kWidth = 8;

/// y [4, 8] holds seed + 1, seed + 2, ...; `mark` is one integer, always 7.
class Toy final : public Problem {
 public:
  Toy(Device& device, int seed, const Tolerance& tolerance, DType dtype = DType::f32)
      : Problem(device),
        tolerance_(tolerance),
        y_(make_tensor("y", Role::output, dtype, {kRows, kWidth})),
        mark_(make_tensor("mark", Role::output, DType::i32, {1})) {
    for (int64_t i = 0; i < y_.size(); ++i) truth_.push_back(static_cast<double>(seed + 1 + i));
    put({truth_.begin(), truth_.end()});
    mark_.upload(std::vector<int32_t>{7});
  }
  Checked check() const override {
    const auto y = values();
    Checked checked;
    checked.accuracy = {compare_floats("y", y, truth_, kWidth, tolerance_, kFp32)};
    if (looks_at_mark) {
      checked.accuracy.push_back(
          compare_exact("mark", mark_.download<int32_t>(), std::vector<int32_t>{7}));
    }
    checked.hash = hash_bytes(y.data(), y.size() * sizeof(float));
    return checked;
  }
  Corruptions corruptions() override {
    return {.experts_swapped = Corruption([this] {
              auto y = values();
              std::swap_ranges(y.begin(), y.begin() + kWidth, y.begin() + kWidth);
              put(y);
            }),
            .token_dropped = Corruption([] {}),  // finds nothing to drop
            .scales_transposed = Corruption::not_applicable("no scales")};
  }
  Cost cost() const override { return {}; }
  std::vector<float> values() const {
    std::vector<float> wide;
    for (int64_t i = 0; i < y_.size(); ++i) wide.push_back(read_float(y_.dtype(), y_.data(), i));
    return wide;
  }

  bool looks_at_mark = true;

 private:
  void put(const std::vector<float>& y) {
    for (int64_t i = 0; i < y_.size(); ++i) {
      write_float(y_.dtype(), y_.data(), i, y[static_cast<size_t>(i)]);
    }
  }

  Tolerance tolerance_;
  Tensor& y_;
  Tensor& mark_;
  std::vector<double> truth_;
};

const Tolerance kTight{.rtol = 1e-3, .atol = 1e-6, .rel_l2 = 1e-3, .row = 1e-3, .scale = 1e-3};

class Controls : public ::testing::Test {
 protected:
  std::vector<Control> run(Toy& toy) {
    const Toy other(*device_, 100, kTight, toy.tensors()[0]->dtype());
    return negative_controls(toy, other);
  }
  static const Control& find(const std::vector<Control>& controls, const std::string& name,
                             const std::string& output) {
    const auto it = std::find_if(controls.begin(), controls.end(), [&](const Control& c) {
      return c.name == name && c.output == output;
    });
    if (it == controls.end()) throw Error(Exit::internal, "no control " + name + " of " + output);
    return *it;
  }
  static ControlOutcome outcome(const std::vector<Control>& controls, const std::string& name,
                                const std::string& output) {
    return find(controls, name, output).outcome;
  }
  std::unique_ptr<Device> device_ = open_host_device();
};

TEST_F(Controls, ATightToleranceRejectsAllThatChanges) {
  Toy toy(*device_, 0, kTight);
  const auto before = toy.values();
  const auto controls = run(toy);
  for (const char* name : {"unwritten", "zeros", "constant", "scaled by 1.05", "stale"}) {
    EXPECT_EQ(outcome(controls, name, "y"), ControlOutcome::rejected) << name;
  }
  EXPECT_EQ(outcome(controls, "experts swapped", ""), ControlOutcome::rejected);
  EXPECT_EQ(outcome(controls, "token dropped", ""), ControlOutcome::unchanged);
  EXPECT_EQ(outcome(controls, "scales transposed", ""), ControlOutcome::not_applicable);
  EXPECT_EQ(outcome(controls, "zeros", "mark"), ControlOutcome::rejected);
  EXPECT_EQ(outcome(controls, "constant", "mark"), ControlOutcome::unchanged);
  EXPECT_EQ(outcome(controls, "stale", "mark"), ControlOutcome::unchanged);
  EXPECT_EQ(controls.size(), 12u) << "an integer is not scaled";
  EXPECT_EQ(blind_spots(controls), "");
  EXPECT_EQ(toy.values(), before) << "repaired";
}

TEST_F(Controls, ALooseToleranceIsBlind) {
  Toy toy(*device_, 0, {.rtol = 0.1, .atol = 0, .rel_l2 = 0.1, .row = 0.1, .scale = 0.1});
  const auto controls = run(toy);
  EXPECT_EQ(outcome(controls, "scaled by 1.05", "y"), ControlOutcome::accepted);
  EXPECT_EQ(outcome(controls, "zeros", "y"), ControlOutcome::rejected);
  EXPECT_EQ(blind_spots(controls),
            "blind tolerance: 'scaled by 1.05' of y was accepted (y: relative L2 error 5.00e-02, "
            "worst row 5.00e-02, scale 1.050000)");
}

// The hash leaves the tensor out, as if nothing changed; poison tells that it is never looked at.
TEST_F(Controls, AnOutputThatNothingLooksAtIsBlind) {
  Toy toy(*device_, 0, kTight);
  toy.looks_at_mark = false;
  const auto controls = run(toy);
  EXPECT_EQ(outcome(controls, "zeros", "mark"), ControlOutcome::unchanged);
  EXPECT_EQ(outcome(controls, "unwritten", "mark"), ControlOutcome::accepted);
  EXPECT_EQ(blind_spots(controls),
            "blind tolerance: 'unwritten' of mark was accepted (no output looks different from the "
            "truth)");
}

// The most adversarial constant is the mean: it passes where only the sum is looked at.
TEST_F(Controls, TheConstantIsTheMeanOfWhatIsDefined) {
  Toy toy(*device_, 0, {.rtol = 2, .atol = 20, .rel_l2 = 0.5, .row = 3, .scale = 0.5});
  const auto controls = run(toy);
  const Control& c = find(controls, "constant", "y");
  // y is 1 ... 32 with mean 16.5: ||16.5 - y|| / ||y|| = sqrt(2728 / 11440)
  EXPECT_EQ(c.outcome, ControlOutcome::accepted);
  EXPECT_NE(c.why.find("relative L2 error 4.88e-01"), std::string::npos) << c.why;
}

TEST_F(Controls, NarrowFloatsAreScaledInTheirOwnType) {
  Toy toy(*device_, 0, {.rtol = 0.1, .atol = 0, .rel_l2 = 0.1, .row = 0.1, .scale = 0.1},
          DType::bf16);
  const auto controls = run(toy);
  const Control& c = find(controls, "scaled by 1.05", "y");
  EXPECT_EQ(c.outcome, ControlOutcome::accepted);
  EXPECT_NE(c.why.find("scale 1.0495"), std::string::npos) << c.why;
}

// Codes of 8 bits move by 1/8 or stay: on average about the factor.
TEST_F(Controls, Fp8OutputsAreScaledAndLevelled) {
  Toy toy(*device_, 0, {.rtol = 0.2, .atol = 0, .rel_l2 = 0.2, .row = 0.2, .scale = 0.2},
          DType::e4m3);
  const auto controls = run(toy);
  EXPECT_EQ(outcome(controls, "scaled by 1.05", "y"), ControlOutcome::accepted);
  EXPECT_EQ(outcome(controls, "constant", "y"), ControlOutcome::rejected);
  EXPECT_EQ(outcome(controls, "unwritten", "y"), ControlOutcome::rejected);
}

}  // namespace
}  // namespace moegate::test
