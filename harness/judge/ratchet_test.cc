// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/ratchet.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moegate {
namespace {

/// Five seeds with the same error; every call writes other bits.
Side side_with(double rel_l2, double worst_row = 1e-2, double bias = 0) {
  static uint64_t hash = 0;
  Side side;
  side.error = rel_l2;
  for (int64_t seed = 0; seed < 5; ++seed) {
    side.seeds.push_back({seed, ++hash, rel_l2, worst_row, bias});
  }
  return side;
}

bool names(const std::string& why, const char* what) {
  return why.find(what) != std::string::npos;
}

TEST(Ratchet, BitsAreTheMeanLogRatioOverCommonSeeds) {
  const Side base = side_with(1e-3);
  Side head = side_with(1e-3);
  for (size_t i = 0; i < 5; ++i) head.seeds[i].rel_l2 = 1e-3 * (i < 2 ? 2 : 4);
  EXPECT_NEAR(*accuracy_change_bits(base, head), (2 * 1 + 3 * 2) / 5.0, 1e-12);
  for (SeedError& s : head.seeds) s.seed += 100;
  EXPECT_FALSE(accuracy_change_bits(base, head).has_value());
}

TEST(Ratchet, HalfABitOnAverageIsAllowed) {
  const Side base = side_with(1e-3);
  EXPECT_EQ(worse_output(base, side_with(1e-3 * std::exp2(0.49))), "");
  const std::string why = worse_output(base, side_with(1e-3 * std::exp2(0.51)));
  EXPECT_TRUE(names(why, "+0.51 bits on average, worse on 5 of 5 seeds")) << why;
  EXPECT_EQ(worse_output(base, side_with(1e-4)), "") << "better is not worse";
}

TEST(Ratchet, FourOfFiveSeedsMustBeWorse) {
  const Side base = side_with(1e-3);
  Side head = side_with(4e-3);
  head.seeds[0].rel_l2 = 1e-3;
  EXPECT_NE(worse_output(base, head), "");
  head.seeds[1].rel_l2 = 1.1e-3;  // 0.14 bit: three of five are left
  EXPECT_EQ(worse_output(base, head), "");
  head.seeds[1].hash = base.seeds[1].hash;
  head.seeds[1].rel_l2 = NAN;
  EXPECT_EQ(worse_output(base, head), "") << "the same bits are the same error";
}

TEST(Ratchet, AScaleThatWasRightMayMoveByLess) {
  const Side base = side_with(1e-3, 1e-2, 5e-5);
  EXPECT_EQ(worse_output(base, side_with(1e-3, 1e-2, 5e-4)), "");
  EXPECT_TRUE(names(worse_output(base, side_with(1e-3, 1e-2, 6e-4)), "more than 0.0005 further"));
  EXPECT_EQ(worse_output(side_with(1e-3, 1e-2, 2e-4), side_with(1e-3, 1e-2, 2e-3)), "");
}

TEST(Ratchet, AWorseRowOrScaleShowsThoughTheTensorDoesNot) {
  const Side base = side_with(1e-3, 4e-3, 1e-3);
  EXPECT_EQ(worse_output(base, side_with(1e-3, 8e-3, 1e-3)), "");
  EXPECT_TRUE(names(worse_output(base, side_with(1e-3, 8.1e-3, 1e-3)), "worst row"));
  EXPECT_EQ(worse_output(base, side_with(1e-3, 4e-3, -2.9e-3)), "");
  EXPECT_TRUE(names(worse_output(base, side_with(1e-3, 4e-3, -3.1e-3)), "scale off"));
}

TEST(Ratchet, TheRoundingOfFp32MayMove) {
  EXPECT_EQ(worse_output(side_with(1e-9, 1e-9), side_with(9e-7, 2.9e-6)), "");
  EXPECT_NE(worse_output(side_with(9e-7, 1e-9), side_with(2e-6, 1e-9)), "");
  EXPECT_NE(worse_output(side_with(0, 0), side_with(0, 4e-6)), "");
}

TEST(Ratchet, NanIsWorseThanAnything) {
  const Side base = side_with(1e-3);
  Side head = side_with(1e-3);
  head.seeds[3].rel_l2 = NAN;
  EXPECT_NE(worse_output(base, head), "");
  EXPECT_NE(worse_output(base, side_with(1e-3, NAN)), "");
  EXPECT_NE(worse_output(base, side_with(1e-3, 1e-2, NAN)), "");
}

TEST(Ratchet, LostDeterminismIsWorse) {
  Side base = side_with(1e-3), head = side_with(1e-3);
  head.deterministic = false;
  EXPECT_TRUE(names(worse_output(base, head), "differ between launches"));
  base.deterministic = false;
  EXPECT_EQ(worse_output(base, head), "");
}

TEST(Ratchet, WithoutSeedsTheErrorMayGrowByTwoBits) {
  Side base, head;
  base.error = 1e-3;
  head.error = 3.9e-3;
  EXPECT_EQ(worse_output(base, head), "");
  head.error = 4.1e-3;
  EXPECT_TRUE(names(worse_output(base, head), "0.0041 against 0.001 in the baseline, +2.0 bits"));
  head.error = NAN;
  EXPECT_NE(worse_output(base, head), "");
  base.error = 1e-9;
  head.error = 9e-7;
  EXPECT_EQ(worse_output(base, head), "");
}

/// With an excess of its own on every seed.
Side graded_side(double excess, double row_scale = 0) {
  Side side = side_with(1e-3);
  for (SeedError& seed : side.seeds) {
    seed.rounding = {
        .graded = 100000, .excess = excess, .beyond = 1e-3 * excess, .row_scale = row_scale};
  }
  side.rounding = mean_rounding(side.seeds);
  return side;
}

TEST(Ratchet, PrecisionIsComparedOnOtherSeedsToo) {
  const Side base = graded_side(0.02);
  Side head = graded_side(1.7, 1.1e-3);
  EXPECT_TRUE(names(worse_output(base, head), "each row is off by its own factor")) << "paired";
  for (SeedError& seed : head.seeds) seed.seed += 100;
  EXPECT_TRUE(names(worse_output(base, head), "each row is off by its own factor"));
  head.seeds.clear();
  EXPECT_TRUE(names(worse_output(base, head), "each row is off by its own factor")) << "a file's";
  EXPECT_EQ(better_output(head, base), "excess error 1.7 -> 0.02");
  EXPECT_EQ(worse_output(base, graded_side(0.09)), "") << "too small to matter";
}

TEST(Ratchet, WherePrecisionIsKnownTheErrorIsNoQuestion) {
  Side base = graded_side(0.02), head = graded_side(0.02);
  for (Side* side : {&base, &head}) side->seeds.clear();
  head.error = 4.1e-3;
  EXPECT_EQ(maybe_worse_output(base, head), "");
  EXPECT_EQ(worse_output(base, head), "");
  base.rounding.graded = 0;
  EXPECT_NE(maybe_worse_output(base, head), "") << "an older file's";
}

TEST(Ratchet, OnlySeedsOfBothSidesCount) {
  const Side base = graded_side(0.02);
  Side head = graded_side(0.02);
  head.seeds.push_back({.seed = 99, .rounding = {.graded = 100000, .excess = 50}});
  head.rounding = mean_rounding(head.seeds);
  EXPECT_EQ(worse_output(base, head), "");
}

Level level_of(std::vector<SeedError> seeds, bool deterministic = true) {
  Level level{"op/a=1", "op", "nightly", "", "fused", 0, {}};
  level.result.variant = "fused";
  level.result.seeds = std::move(seeds);
  level.result.deterministic = deterministic;
  return level;
}

/// The output hash of a side whose processes are these.
std::string out_of(const std::vector<Level>& levels) {
  return collect(levels).begin()->second.out;
}

TEST(Ratchet, BitIdenticalNeedsEveryProcessOfBothSides) {
  const std::vector<SeedError> seeds = {{1, 0xabc, 0, 0, 0}, {2, 0xdef, 0, 0, 0}};
  auto other = seeds;
  other[1].hash = 0xdee;
  const std::string out = out_of({level_of(seeds), level_of(seeds), level_of({})});
  EXPECT_EQ(out.size(), 16u);
  EXPECT_EQ(out_of({level_of({}), level_of(seeds)}), out);
  EXPECT_NE(out_of({level_of(other)}), out);
  EXPECT_EQ(out_of({level_of(seeds), level_of(other), level_of(seeds)}), "");
  EXPECT_EQ(out_of({level_of(seeds), level_of(seeds, false)}), "");
  EXPECT_EQ(out_of({level_of({})}), "");
  Side a, b;
  EXPECT_FALSE(bit_identical(a, b)) << "unknown";
  a.out = out;
  EXPECT_FALSE(bit_identical(a, b));
  b.out = out;
  EXPECT_TRUE(bit_identical(a, b));
}

}  // namespace
}  // namespace moegate
