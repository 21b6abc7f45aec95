// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <gtest/gtest.h>

#include "harness/device/open.h"

namespace moegate {
namespace {

/// Nine words of output, of which a variant writes the first three.
class ThreeOfNine final : public Problem {
 public:
  explicit ThreeOfNine(Device& device) : Problem(device) {}
  Checked check() const override { return {}; }
  Corruptions corruptions() override {
    const auto none = [] { return Corruption::not_applicable("nothing is checked"); };
    return {none(), none(), none()};
  }
  Cost cost() const override { return {}; }

  void write(float last) {
    auto* out = out_.data<float>();
    out[0] = 1;
    out[1] = 2;
    out[2] = last;
  }
  void spoil() {
    for (const Scribble& part : scribbler_.next(*this)) scribble(part);
  }

 private:
  Tensor& out_ = make_tensor("out", Role::output, DType::f32, {9});
  Scribbler scribbler_;
};

TEST(Scribble, WhatNobodyWroteIsNoneOfTheHash) {
  const auto device = open_host_device();
  ThreeOfNine problem(*device);
  problem.poison();
  problem.write(3);
  const uint64_t written = hash_of_written(problem);
  problem.poison(kOtherPoisonByte);
  problem.write(3);
  EXPECT_EQ(hash_of_written(problem), written) << "another poison in the rows that are undefined";
  for (int launch = 0; launch < 20; ++launch) {
    problem.spoil();
    problem.write(3);
    EXPECT_EQ(hash_of_written(problem), written) << "launch " << launch;
  }
}

TEST(Scribble, WhatALaunchLeftOutOrWroteOtherwiseIsSeen) {
  const auto device = open_host_device();
  ThreeOfNine problem(*device);
  problem.write(3);
  const uint64_t written = hash_of_written(problem);
  problem.write(3.5F);
  EXPECT_NE(hash_of_written(problem), written);
  problem.spoil();
  EXPECT_NE(hash_of_written(problem), written);
}

// As the hash of a GPU's sample takes it, word by word.
TEST(Scribble, HalvesOfAWordAreSpoiltByThemselves) {
  constexpr uint64_t kWritten = 0x3f800000, kNan = 0xffffffff;
  EXPECT_EQ(written_part(kWritten << 32 | kNan), kWritten << 32);
  EXPECT_EQ(written_part(uint64_t{kOtherSpoilt} << 32 | kWritten), kWritten);
  EXPECT_EQ(written_part(uint64_t{kSpoilt} << 32 | kSpoilt), 0u);
  EXPECT_EQ(written_part(kWritten << 32 | kWritten), kWritten << 32 | kWritten);
}

}  // namespace
}  // namespace moegate
