// SPDX-License-Identifier: Apache-2.0
#include "harness/device/scribble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/device/open.h"
#include "harness/kernel/check.h"

namespace moegate::test {
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

/// Outputs and a workspace that nobody writes.
class Untouched final : public Problem {
 public:
  explicit Untouched(Device& device) : Problem(device) { reserve_workspace(1 << 20); }
  Checked check() const override { return {}; }
  Corruptions corruptions() override {
    const auto none = [] { return Corruption::not_applicable("nothing is checked"); };
    return {none(), none(), none()};
  }
  Cost cost() const override { return {}; }
  Tensor& small = make_tensor("small", Role::output, DType::i32, {40});
  Tensor& rows = make_tensor("rows", Role::output, DType::f32, {5000, 100});
  Tensor& list = make_tensor("list", Role::output, DType::i32, {20 << 20});
};

/// Of words that are 0 where nobody wrote: the longest stretch of such.
size_t longest_gap(const Tensor& tensor) {
  const auto* words = tensor.data<uint32_t>();
  size_t longest = 0, gap = 0;
  for (size_t i = 0; i < tensor.bytes() / 4; ++i) {
    gap = words[i] == 0 ? gap + 1 : 0;
    longest = std::max(longest, gap);
  }
  return longest;
}

TEST(Scribble, AWordOfEveryRowOrOfFourKiloBytesIsSpoilt) {
  const auto device = open_host_device();
  Untouched problem(*device);
  Scribbler scribbler;
  std::set<uint32_t> first_of_list;
  for (int launch = 0; launch < 8; ++launch) {
    problem.poison(0);
    for (const Scribble& part : scribbler.next(problem)) scribble(part);
    EXPECT_EQ(longest_gap(problem.small), 0u) << "all of it";
    for (size_t row = 0; row < 5000; ++row) {
      const auto* words = problem.rows.data<uint32_t>() + row * 100;
      EXPECT_TRUE(std::any_of(words, words + 100, [](uint32_t w) { return w != 0; })) << row;
    }
    EXPECT_LT(longest_gap(problem.list), 2 * Scribbler::kMostApart);
    EXPECT_LT(longest_gap(*problem.tensors().back()), 2 * Scribbler::kMostApart) << "workspace";
    const auto* list = problem.list.data<uint32_t>();
    for (uint32_t i = 0; i < 1024; ++i) {
      if (list[i] != 0) first_of_list.insert(i);
    }
  }
  EXPECT_GT(first_of_list.size(), 4u) << "at a random place in it";
  EXPECT_TRUE(problem.broken_guard().empty());
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
}  // namespace moegate::test
