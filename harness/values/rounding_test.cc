// SPDX-License-Identifier: Apache-2.0
#include "harness/values/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "harness/kernel/dtype.h"
#include "harness/values/accuracy.h"

namespace moegate::test {
namespace {

TEST(RoundTo, IsTheTypesOwnRounding) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-30, 16);
  for (const DType type : {DType::bf16, DType::f16, DType::e4m3}) {
    const RoundTo round(float_type(type));
    for (int i = 0; i < 20000; ++i) {
      const float x = std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1);
      uint32_t bits = 0;
      write_float(type, &bits, 0, x);
      const double stored = read_float(type, &bits, 0);
      if (std::isfinite(stored)) {
        EXPECT_EQ(round(x), stored) << name_of(type) << " of " << x;
      }
    }
  }
  EXPECT_EQ(RoundTo(kFp32)(0.1), double{0.1f});
}

TEST(RoundTo, TiesGoToEvenAndRoundOnce) {
  const RoundTo round(kBf16);
  const double ulp = 0x1p-7;  // from 1 to 2
  EXPECT_EQ(round(1 + 0.5 * ulp), 1);
  EXPECT_EQ(round(1 + 1.5 * ulp), 1 + 2 * ulp);
  // In fp32 this is the tie.
  EXPECT_EQ(round(1 + 0.5 * ulp + 0x1p-40), 1 + ulp);
  EXPECT_EQ(RoundTo(kFp16)(1e9), 65504);
  EXPECT_EQ(RoundTo(kE4m3)(-0x1.8p-10), -0x1p-8 * 0.5) << "one and a half of the least step";
  EXPECT_TRUE(std::isnan(round(NAN)));
}

/// rows x columns of normal values, and what a kernel makes of them.
struct Data {
  int64_t rows, columns;
  std::vector<double> truth;
  std::vector<float> out;

  Data(int64_t r, int64_t c) : rows(r), columns(c) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    const RoundTo round(kBf16);
    for (int64_t i = 0; i < r * c; ++i) {
      truth.push_back(normal(random));
      out.push_back(static_cast<float>(round(truth.back())));
    }
  }
  void spoil(int64_t i, double factor) {
    const auto at = static_cast<size_t>(i);
    out[at] = static_cast<float>(RoundTo(kBf16)(factor * truth[at]));
  }
  BeyondRounding graded(const FloatType& type = kBf16) const {
    RoundingPass pass(columns, type);
    for (int64_t i = 0; i < rows * columns; i += columns)
      pass.add_row(out.data() + i, truth.data() + i);
    return pass.result();
  }
};

TEST(Rounding, TheTruthRoundedIsRight) {
  const BeyondRounding b = Data(64, 512).graded();
  EXPECT_EQ(b.graded, 64 * 512);
  EXPECT_EQ(b.misrounded, 0);
  EXPECT_EQ(b.excess, 0);
  EXPECT_EQ(b.row_scale_most, 0);
}

TEST(Rounding, AFactorOnEverythingIsTheScale) {
  Data data(64, 1024);
  for (int64_t i = 0; i < 64 * 1024; ++i) data.spoil(i, 1.001);
  const BeyondRounding b = data.graded();
  EXPECT_NEAR(b.common_scale, 1e-3, 5e-5);
  EXPECT_NEAR(b.row_scale, 1e-3, 1e-4) << "rms";
  // A shift of 1e-3 crosses a boundary of 2^-7 to 2^-8 in 0.72 * 1e-3 / 2^-7 of all cases.
  EXPECT_NEAR(b.misrounded, 0.18, 0.02);
  EXPECT_NEAR(b.beyond, b.excess * 1.66e-3, 2e-4);
}

TEST(Rounding, ARowAndAColumnAreNamed) {
  Data row(64, 1024);
  for (int64_t i = 0; i < 1024; ++i) row.spoil(37 * 1024 + i, 1.001);
  const BeyondRounding b = row.graded();
  EXPECT_EQ(b.at_row, 37);
  EXPECT_NEAR(b.row_scale_most, 5e-4, 2e-4) << "1e-3 less four standard errors";
  EXPECT_NEAR(b.row_misrounded, 0.18, 0.04);
  EXPECT_LT(b.column_scale_most, 1e-4);
  Data column(1024, 64);
  for (int64_t i = 0; i < 1024; ++i) column.spoil(i * 64 + 12, 1.001);
  EXPECT_EQ(column.graded().at_column, 12);
  EXPECT_NEAR(column.graded().column_scale_most, 5e-4, 2e-4);
}

TEST(Rounding, FewElementsShowNothing) {
  Data data(8, 64);
  data.spoil(5, 1.01);  // an ulp or two
  const BeyondRounding b = data.graded();
  EXPECT_LT(b.row_misrounded, 0.005) << "one of 256, not of 64";
  EXPECT_LT(b.misrounded, 0.001);
  EXPECT_LT(b.excess, excess_of_few(b.graded));
  EXPECT_EQ(beyond_allowed(b, allowed_beyond(kBf16.digits, 0)), "");
  EXPECT_EQ(b.column_misrounded, 0) << "8 elements are too few for any statement";
}

TEST(Rounding, TheLargestElementOffByAnUlpIsChance) {
  Data data(8, 512);
  for (size_t i = 0; i < data.truth.size(); ++i) {  // an output that few elements carry
    data.truth[i] = std::pow(data.truth[i], 3);
    data.out[i] = static_cast<float>(RoundTo(kBf16)(data.truth[i]));
  }
  const auto largest =
      std::ranges::max_element(data.truth, {}, [](double t) { return std::abs(t); });
  const auto at = static_cast<size_t>(largest - data.truth.begin());
  const auto allowed = allowed_beyond(kBf16.digits, 0);
  data.out[at] = static_cast<float>(RoundTo(kBf16)(data.out[at] * (1 + 0x1.4p-8)));  // the next
  EXPECT_GT(data.graded().misrounded, 0);
  EXPECT_EQ(data.graded().excess, 0);
  EXPECT_EQ(beyond_allowed(data.graded(), allowed), "");
  data.out[at] = static_cast<float>(RoundTo(kBf16)(data.truth[at] * (1 + 0x1p-5)));
  EXPECT_GT(data.graded().excess, 3) << "by eight ulps is no chance";
}

TEST(Rounding, WhatSumsInFp32CannotTellIsNotMisrounded) {
  Data data(64, 512);
  for (size_t i = 0; i < data.out.size(); i += 16) data.truth[i] = -3e-38, data.out[i] = 0;
  EXPECT_EQ(data.graded().misrounded, 0) << "an exponential that overflowed";
  for (size_t i = 0; i < data.out.size(); i += 16) data.truth[i] = -1e-6;
  EXPECT_NEAR(data.graded().misrounded, 1.0 / 16, 1e-9) << "sums do tell it from 0";
}

TEST(Rounding, OfFp32OnlyWhatOtherOrdersOfSumsDoNotMake) {
  Data data(16, 1024);
  for (size_t i = 0; i < data.out.size(); ++i) {
    data.out[i] = static_cast<float>(data.truth[i] * (1 + 3e-7));
  }
  BeyondRounding b = data.graded(kFp32);
  EXPECT_EQ(b.misrounded, 0);
  EXPECT_LT(b.excess, 0.1);
  for (size_t i = 0; i < data.out.size(); ++i) {
    data.out[i] = static_cast<float>(data.truth[i] * (1 + 1e-5));
  }
  b = data.graded(kFp32);
  EXPECT_GT(b.excess, 0.9);
}

TEST(Rounding, WorstAndMean) {
  BeyondRounding a{.graded = 10, .excess = 1, .row_scale = 2e-3, .digits = 8, .at_row = 4}, all;
  const BeyondRounding b{.graded = 10, .misrounded = 0.5, .excess = 3, .at_row = 5};
  take_worst(all, a);
  take_worst(all, b);
  take_worst(all, {});
  EXPECT_EQ(all.excess, 3);
  EXPECT_EQ(all.row_scale, 2e-3);
  EXPECT_EQ(all.misrounded, 0.5);
  EXPECT_EQ(all.at_row, 5);
  EXPECT_EQ(all.digits, 8);
  EXPECT_EQ(mean_of(std::vector{a, b, BeyondRounding{}}).excess, 2) << "one is not graded";
  a.excess = NAN;
  take_worst(all, a);
  take_worst(all, b);
  EXPECT_TRUE(std::isnan(all.excess));
}

TEST(Rounding, WhatIsAllowedFollowsFromTheTypes) {
  const BeyondRounding once = allowed_beyond(kBf16.digits, 0);
  EXPECT_DOUBLE_EQ(once.excess, 0.3);
  EXPECT_DOUBLE_EQ(once.misrounded, 0.01);
  EXPECT_DOUBLE_EQ(once.row_scale, 2e-4);
  // One more rounding to bf16 on the way: a simulation says 26 % and 1.7.
  const BeyondRounding twice = allowed_beyond(kBf16.digits, 0.43 * 0x1p-8);
  EXPECT_GT(twice.misrounded, 0.26);
  EXPECT_LT(twice.misrounded, 0.5);
  EXPECT_NEAR(twice.excess, 1.2 * std::sqrt(3), 1e-9);
  EXPECT_EQ(beyond_allowed({.graded = 9000, .excess = 0.2}, once), "");
  EXPECT_EQ(
      beyond_allowed({.graded = 9000, .excess = 0.9, .row_scale = 1.1e-3, .at_row = 37}, once),
      "rows are off by factors, rms 0.11 %, allowed 0.02 %; row 37 has the most");
  EXPECT_EQ(beyond_allowed({.graded = 9000000, .excess = 1.3}, once),
            "the error beyond its own rounding is, in units of that, 1.3, allowed 0.3");
  EXPECT_NE(beyond_allowed({.misrounded = NAN}, once), "");
  EXPECT_EQ(beyond_allowed({.graded = 500, .excess = 0.5}, once), "") << "one element, by an ulp";
  // Seen on an H200: 384 codes of two_kernels, of which more elements may have 1.16.
  const BeyondRounding of_codes = allowed_beyond(4, 0x1p-7);
  EXPECT_EQ(beyond_allowed({.graded = 400, .excess = 1.3}, of_codes), "");
  EXPECT_NE(beyond_allowed({.graded = 40000, .excess = 1.3}, of_codes), "");
  // One group of 128: five codes that fell to the other side of a tie.
  EXPECT_EQ(beyond_allowed({.graded = 56, .excess = 3.3}, of_codes), "");
  EXPECT_NE(beyond_allowed({.graded = 56, .excess = 4}, of_codes), "");
}

TEST(Rounding, AToleranceThatStatesItHoldsTheOutputToIt) {
  Data data(64, 1024);
  for (int64_t r = 0; r < 64; ++r) {
    const double weight = r % 2 == 0 ? 1.001 : 0.999;
    for (int64_t i = 0; i < 1024; ++i) data.spoil(r * 1024 + i, weight);
  }
  Tolerance wide{.rtol = 1, .atol = 1, .rel_l2 = 1, .row = 1, .scale = 1};
  const auto compared = [&](const Tolerance& tolerance) {
    return compare_floats("y", data.out, data.truth, 1024, tolerance, kBf16);
  };
  EXPECT_TRUE(compared(wide).ok);
  wide.between = 0;
  const Accuracy a = compared(wide);
  EXPECT_FALSE(a.ok);
  EXPECT_NE(a.why.find("y: rows are off by factors, rms 0.09"), std::string::npos) << a.why;
  EXPECT_TRUE(compared(wide.widened({2})).ok) << "a variant that states a factor rounds otherwise";
  EXPECT_FALSE(compared(wide.widened({2, 1e-4})).ok) << "and is held to what it states";
  EXPECT_TRUE(compared(wide.widened({1, 1e-3})).ok);
}

TEST(Rounding, AnElementOfALargeRowMayBeOffByWhatTheRowsRoundingsMake) {
  std::vector<double> truth(256, 2.0);
  std::vector<float> out(256, 2.0f);
  truth[9] = 0, out[9] = 0.3f;
  Tolerance tolerance{.rtol = 0.1, .atol = 0.1, .rel_l2 = 1, .row = 1, .scale = 1, .between = 0.04};
  const auto compared = [&] { return compare_floats("y", out, truth, 256, tolerance, kBf16); };
  EXPECT_EQ(compared().mismatches, 0) << "6 x 0.04 x 2";
  out[9] = 0.5f;
  EXPECT_EQ(compared().mismatches, 1);
  tolerance.by_chance = 0.02;
  EXPECT_EQ(compared().mismatches, 0) << "6 x (0.04 + 0.02) x 2";
  tolerance.between = 0, tolerance.by_chance = 0.03;
  out[9] = 0.3f;
  EXPECT_EQ(compared().mismatches, 0) << "6 x 0.03 x 2";
  tolerance.between = Tolerance::kNotStated;
  EXPECT_EQ(compared().mismatches, 1);
}

TEST(Rounding, RoundingsInBetweenAddUpAsTheRootOfTheirSquares) {
  const Tolerance of_operator{1, 1, 1, 1, 1, 3e-4};
  EXPECT_DOUBLE_EQ(of_operator.widened({1, 4e-4}).between, 5e-4);
  EXPECT_DOUBLE_EQ(of_operator.widened({1, 0}).between, 3e-4);
  EXPECT_EQ(of_operator.widened({2, 0}).between, Tolerance::kNotStated);
  EXPECT_EQ((Tolerance{1, 1, 1, 1, 1}.widened({1, 4e-4}).between), Tolerance::kNotStated);
  EXPECT_DOUBLE_EQ((Tolerance{1, 1, 1, 1, 1, 0, 0.01}.widened({2, 0}).by_chance), 0.02);
}

TEST(Rounding, OneLargeValueThatIsRoundedAnewMayMoveHalfOfItsRow) {
  const double chance = 3 * 0x1p-8 / std::sqrt(2048);  // of the activations of an int4 layer
  const BeyondRounding allowed = allowed_beyond(kBf16.digits, 0, chance);
  Data data(16, 512);
  std::mt19937_64 random(7);
  std::normal_distribution<double> of_large_value(0, 10 * chance);
  const auto move_row = [&](size_t row) {
    for (size_t i = 512 * row; i < 512 * (row + 1); ++i)
      data.out[i] = static_cast<float>(RoundTo(kBf16)(data.truth[i] + of_large_value(random)));
  };
  move_row(3);
  EXPECT_GT(data.graded().row_misrounded, 0.25);
  EXPECT_EQ(beyond_allowed(data.graded(), allowed), "");
  EXPECT_NE(beyond_allowed(data.graded(), allowed_beyond(kBf16.digits, chance)), "");
  for (size_t row = 0; row < 16; ++row) move_row(row);
  EXPECT_NE(beyond_allowed(data.graded(), allowed), "") << "all rows have no such value";
}

// A shift that is small beside the output's rounding moves few elements, each by a whole unit.
TEST(Rounding, WhatIsAllowedOfASmallShiftIsWhatItMakes) {
  for (const double between : {1e-4, 4e-4, 1.7e-3, 7e-3}) {
    Data data(64, 1024);
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, between);
    for (int64_t i = 0; i < 64 * 1024; ++i) data.spoil(i, 1 + noise(random));
    const BeyondRounding measured =
        compare_floats("y", data.out, data.truth, 1024, {1, 1, 1, 1, 1}, kBf16).rounding;
    const BeyondRounding allowed = allowed_beyond(kBf16.digits, between);
    EXPECT_EQ(beyond_allowed(measured, allowed), "") << between;
    EXPECT_GT(measured.excess, 0.5 * allowed.excess) << between;
    EXPECT_GT(measured.misrounded, 0.4 * std::min(allowed.misrounded, 0.9)) << between;
  }
}

}  // namespace
}  // namespace moegate::test
