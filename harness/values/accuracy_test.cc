// SPDX-License-Identifier: Apache-2.0
#include "harness/values/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace moegate::test {
namespace {

const Tolerance kTolerance{.rtol = 1e-3, .atol = 1e-6, .rel_l2 = 1e-3, .row = 3e-3, .scale = 1e-3};

std::vector<double> wave(size_t n) {
  std::vector<double> v;
  for (size_t i = 0; i < n; ++i) v.push_back(std::sin(0.1 * static_cast<double>(i)) + 1.5);
  return v;
}

std::vector<float> as_floats(const std::vector<double>& v) {
  return {v.begin(), v.end()};
}

TEST(Accuracy, EqualPasses) {
  const auto truth = wave(1000);
  const Accuracy a = compare_floats("y", as_floats(truth), truth, 10, kTolerance, kFp32);
  EXPECT_TRUE(a.ok) << a.why;
  EXPECT_LT(a.rel_l2, 1e-7);
  EXPECT_NEAR(a.scale, 1, 1e-7);
}

TEST(Accuracy, ZerosConstantScaleSwapAndStaleAreRejected) {
  const auto truth = wave(1000);
  const auto rejected = [&](std::vector<float> out) {
    return !compare_floats("y", out, truth, 10, kTolerance, kFp32).ok;
  };
  EXPECT_TRUE(rejected(std::vector<float>(1000, 0.0f)));
  EXPECT_TRUE(rejected(std::vector<float>(1000, 1.5f)));
  auto scaled = as_floats(truth);
  for (float& x : scaled) x *= 1.05f;
  EXPECT_TRUE(rejected(scaled));
  auto swapped = as_floats(truth);
  std::swap_ranges(swapped.begin(), swapped.begin() + 10, swapped.begin() + 50);
  EXPECT_TRUE(rejected(swapped));
}

TEST(Accuracy, ScaleIsTheLeastSquaresFactor) {
  const auto truth = wave(64);
  auto out = as_floats(truth);
  for (float& x : out) x *= 0.9f;
  EXPECT_NEAR(compare_floats("y", out, truth, 8, kTolerance, kFp32).scale, 0.9, 1e-6);
}

TEST(Accuracy, NanFailsAndIsNamed) {
  const auto truth = wave(100);
  auto out = as_floats(truth);
  out[7] = std::numeric_limits<float>::quiet_NaN();
  const Accuracy a = compare_floats("y", out, truth, 10, kTolerance, kFp32);
  EXPECT_FALSE(a.ok);
  EXPECT_EQ(a.nonfinite, 1);
  EXPECT_EQ(a.worst_index, 7);
  EXPECT_NE(a.why.find("nan for"), std::string::npos) << a.why;
}

TEST(Accuracy, SameInfinityIsNoError) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> truth = {1, -infinity};
  EXPECT_TRUE(compare_floats("y", as_floats(truth), truth, 2, kTolerance, kFp32).ok);
  EXPECT_FALSE(compare_floats("y", std::vector<float>{1, 1e30f}, truth, 2, kTolerance, kFp32).ok);
}

TEST(Accuracy, OneBadRowAmongManyShows) {
  const auto truth = wave(100000);
  auto out = as_floats(truth);
  for (size_t i = 500; i < 510; ++i) out[i] = 0;
  Tolerance loose{.rtol = 10, .atol = 10, .rel_l2 = 1, .row = 1.1, .scale = 1};
  const Accuracy a = compare_floats("y", out, truth, 10, loose, kFp32);
  EXPECT_TRUE(a.ok) << a.why;
  EXPECT_NEAR(a.worst_row, 1, 1e-6);
  EXPECT_LT(a.row_p999, 1e-6) << "one row of 10000 is beyond the percentile";
  loose.row = 0.12;
  const Accuracy b = compare_floats("y", out, truth, 10, loose, kFp32);
  EXPECT_FALSE(b.ok);
  EXPECT_NE(b.why.find("worst row 1.00e+00 (limit 1.2e-01)"), std::string::npos) << b.why;
}

TEST(Accuracy, WrongElementsAreNamedByRowAndColumn) {
  const auto truth = wave(60);
  auto out = as_floats(truth);
  for (size_t i = 30; i < 40; ++i) out[i] = 0;
  const auto name = [](int64_t row) { return "token " + std::to_string(row / 2) + ", expert 5"; };
  const auto why = [&](const Place& place) {
    return compare_floats("y", out, truth, 10, kTolerance, kFp32, place).why;
  };
  EXPECT_EQ(why({.rows = {0, 2, 4, 63, 70, 71}, .name = name}),
            "y: 10 of 60 elements off by more than 1.0e-06 + 1.0e-03*|truth|, all in row 63 (token "
            "31, expert 5) of 6, worst at row 63 (token 31, expert 5), column 0 (0 for 1.64112)");
  out = as_floats(truth);
  for (size_t i = 4; i < 60; i += 10) out[i] = 0;
  EXPECT_NE(
      why({.columns = {1, 3, 5, 7, 99, 101, 102, 103, 104, 105}}).find(", all in column 99 of"),
      std::string::npos);
  out[5] = 0;
  EXPECT_EQ(why({}).find("all in"), std::string::npos);
}

// 1000 rows of one element with errors 0.001, 0.002, ... 1: the 999th smallest is 0.999.
TEST(Accuracy, RowPercentileIsTheNearestRank) {
  const std::vector<double> truth(1000, 1.0);
  std::vector<float> out;
  for (int i = 1; i <= 1000; ++i) out.push_back(1 + 0.001f * static_cast<float>(i));
  const Accuracy a = compare_floats("y", out, truth, 1, kTolerance, kFp32);
  EXPECT_NEAR(a.row_p999, 0.999, 1e-6);
  EXPECT_NEAR(a.worst_row, 1, 1e-6);
}

// A row far below the median is measured against 1e-3 of the median, not against itself.
TEST(Accuracy, NearlyEmptyRowsHaveAFloor) {
  const std::vector<double> truth = {1, 1, 1e-9};
  const Accuracy a = compare_floats("y", std::vector<float>{1, 1, 0}, truth, 1, kTolerance, kFp32);
  EXPECT_NEAR(a.worst_row, 1e-6, 1e-9);
  EXPECT_TRUE(a.ok) << a.why;
}

TEST(Accuracy, SizesMustAgree) {
  EXPECT_FALSE(
      compare_floats("y", std::vector<float>(3), std::vector<double>(4), 1, kTolerance, kFp32).ok);
  EXPECT_FALSE(compare_exact("i", std::vector<int32_t>(3), std::vector<int32_t>(4)).ok);
}

TEST(Accuracy, IntegersAndZerosAreExact) {
  const Accuracy a =
      compare_exact("ids", std::vector<int32_t>{1, 2, 9}, std::vector<int32_t>{1, 2, 3});
  EXPECT_FALSE(a.ok);
  EXPECT_EQ(a.mismatches, 1);
  EXPECT_EQ(a.worst_index, 2);
  std::vector<uint8_t> bytes(50, 0);
  EXPECT_TRUE(compare_zero("buf", bytes).ok);
  bytes[49] = 1;
  EXPECT_EQ(compare_zero("buf", bytes).worst_index, 49);
}

// The conversion between relative error e and cosine for an independent error: 1 / sqrt(1 + e^2).
TEST(Accuracy, CosineFollowsRelativeError) {
  const double e = 0.1;
  std::vector<double> truth(20000);
  std::vector<float> out(truth.size());
  for (size_t i = 0; i < truth.size(); ++i) {
    truth[i] = std::sin(0.7 * static_cast<double>(i));
    out[i] = static_cast<float>(truth[i] + e * std::cos(0.7 * static_cast<double>(i)));
  }
  const Accuracy a = compare_floats("y", out, truth, 1, kTolerance, kFp32);
  EXPECT_NEAR(a.rel_l2, e, 1e-3);
  EXPECT_NEAR(a.cosine, 1 / std::sqrt(1 + e * e), 1e-4);
}

TEST(WeightOf, OtherValuesHaveAnother) {
  const auto truth = wave(1000);
  const double weight = weight_of(truth);
  const auto moved = [&](auto change) {
    std::vector<double> other = truth;
    change(other);
    return std::abs(weight_of(other) / weight - 1);
  };
  EXPECT_LT(moved([](auto& t) { t[7] *= 1 + 1e-15; }), 1e-12) << "another processor's rounding";
  EXPECT_GT(moved([](auto& t) { t[7] *= 1.01; }), 1e-9);
  EXPECT_GT(moved([](auto& t) { t[7] = -t[7]; }), 1e-9);
  EXPECT_GT(moved([](auto& t) { std::swap(t[0], t[500]); }), 1e-9);
  EXPECT_GT(moved([](auto& t) { t[7] = std::numeric_limits<double>::quiet_NaN(); }), 1e-9);
  EXPECT_EQ(compare_floats("y", as_floats(truth), truth, 10, kTolerance, kFp32).truth, weight);
  const std::vector<int32_t> ids = {3, -1, 4}, others = {3, -1, 5};
  EXPECT_NE(compare_exact("y", ids, ids).truth, compare_exact("y", ids, others).truth);
}

TEST(OtherQuestion, SaysInWhat) {
  SeedError base;
  base.inputs = 1, base.terms = pack_terms(1, 2, 3), base.truth = 1000;
  const auto other = [&](auto change) {
    SeedError head = base;
    change(head);
    return other_question(base, head);
  };
  EXPECT_EQ(other([](SeedError&) {}), "");
  EXPECT_EQ(other([](SeedError& e) { e.terms = pack_terms(9, 9, 9); }), "tensors");
  EXPECT_EQ(other([](SeedError& e) { e.terms = pack_terms(1, 9, 9); }), "tolerances, cost");
  EXPECT_EQ(other([](SeedError& e) { e.terms = pack_terms(1, 2, 9), e.truth = 1; }), "cost, truth");
  EXPECT_EQ(other([](SeedError& e) { e.inputs = 2, e.truth = 1; }), "inputs");
  EXPECT_EQ(other([](SeedError& e) { e.truth *= 1 + 1e-12; }), "");
  EXPECT_EQ(other([](SeedError& e) { e = {}; }), "") << "an older program says nothing";
}

}  // namespace
}  // namespace moegate::test
