// SPDX-License-Identifier: Apache-2.0
// The truth against answers worked out by hand, and what the problems are made of: sorted rows, the
// edges that the data promises, parameters that do not fit.
#include "kernels/qmoe/qmoe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/qmoe/qmoe_testing.h"

namespace moegate::qmoe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two tokens that both chose experts 0 and 2 of 3; K = 4 in two groups, N = 2.
QmoeShape small_shape(bool swiglu) {
  QmoeShape s{};
  s.tokens = 2;
  s.experts = 3;
  s.topk = 2;
  s.k = 4;
  s.n = 2;
  s.block = 2;
  s.swiglu = swiglu;
  s.alpha = 2;
  s.beta = 1;
  s.limit = kInfinity;
  s.dtype = DType::f16;
  return s;
}

QmoeInputs small_inputs() {
  QmoeInputs in;
  in.x = {1, 2, 3, 4, -1, 0.5f, 0, 2};
  in.row_source = {0, 1, 0, 1};
  in.row_expert = {0, 0, 2, 2};
  // Low nibble first: column 0 of expert 0 holds 1, -1, 7, -8, column 1 holds 0, 2, -2, 1.
  in.experts[0].codes = {0x79, 0x0f, 0xa8, 0x96};
  in.experts[0].scales = {1, 0.5f, 2, 1};
  // Expert 2: only the first code of column 0 (3) and the last of column 1 (-3) are not zero.
  in.experts[2].codes = {0x8b, 0x88, 0x88, 0x58};
  in.experts[2].scales = {2, 9, 9, 0.25f};
  return in;
}

TEST(QmoeTruth, Fc2IsTheProductByHand) {
  QmoeInputs in = small_inputs();
  // fc2 has a row of x for every routed row.
  in.x = {1, 2, 3, 4, -1, 0.5f, 0, 2, 1, 2, 3, 4, -1, 0.5f, 0, 2};
  in.row_source = {0, 1, 2, 3};
  // Column 0 of expert 0: 1*(1 - 2) + 0.5*(21 - 32), 1*(-1 - 0.5) + 0.5*(-16);
  // column 1: 2*(0 + 4) + 1*(-6 + 4), 2*(0 + 1) + 1*(0 + 2).
  EXPECT_EQ(qmoe_truth(small_shape(false), in),
            (std::vector<double>{-6.5, 6, -9.5, 4, 6, -3, -6, -1.5}));
}

TEST(QmoeTruth, BiasIsPerColumnOfTheExpert) {
  QmoeShape s = small_shape(false);
  s.has_bias = true;
  s.swiglu = false;
  QmoeInputs in = small_inputs();
  in.experts[0].bias = {0.5, -1};
  in.experts[2].bias = {0, 100};
  EXPECT_EQ(qmoe_truth(s, in), (std::vector<double>{-6, 5, -9, 3, 6, 97, -6, 98.5}));
}

TEST(QmoeTruth, SwigluTakesEvenColumnsAsGate) {
  const auto out = qmoe_truth(small_shape(true), small_inputs());
  ASSERT_EQ(out.size(), 4u);
  const auto expected = [](double gate, double up) {
    return gate / (1 + std::exp(-2 * gate)) * (up + 1);
  };
  EXPECT_DOUBLE_EQ(out[0], expected(-6.5, 6));
  EXPECT_DOUBLE_EQ(out[2], expected(6, -3));
  EXPECT_DOUBLE_EQ(out[3], expected(-6, -1.5));
}

TEST(QmoeTruth, GateIsClampedAboveUpOnBothSides) {
  QmoeShape s = small_shape(true);
  s.limit = 2;
  const auto out = qmoe_truth(s, small_inputs());
  const auto expected = [](double gate, double up) {
    return gate / (1 + std::exp(-2 * gate)) * (up + 1);
  };
  EXPECT_DOUBLE_EQ(out[0], expected(-6.5, 2));  // 6: up from above; the gate has no lower clamp
  EXPECT_DOUBLE_EQ(out[2], expected(2, -2));    // 6 and -3
}

TEST(QmoeFc1, LimitZeroIsNone) {
  EXPECT_EQ(QmoeFc1::shape_of(qmoe_case<QmoeFc1>({{"limit", "0"}})).limit, kInfinity);
  EXPECT_EQ(QmoeFc1::shape_of(qmoe_case<QmoeFc1>({})).limit, 7);
}

template <class P>
class QmoeProblem : public ::testing::Test {};
using Operators = ::testing::Types<QmoeFc1, QmoeFc2>;
TYPED_TEST_SUITE(QmoeProblem, Operators);

TYPED_TEST(QmoeProblem, RowsAreSortedByExpertAndEveryTokenHasItsRows) {
  const auto device = open_host_device();
  TypeParam problem(*device, qmoe_case<TypeParam>({}));
  const QmoeArgs args = problem.args();
  const int rows = args.shape.rows();
  ASSERT_EQ(rows, 21);
  EXPECT_TRUE(std::is_sorted(args.row_expert, args.row_expert + rows));
  std::map<int, int> uses;
  for (int r = 0; r < rows; ++r) {
    ++uses[args.row_source[r]];
    if (r == 0 || args.row_expert[r] != args.row_expert[r - 1]) continue;
    EXPECT_LT(args.row_source[r - 1], args.row_source[r]) << "within an expert by token";
  }
  ASSERT_EQ(uses.size(), static_cast<size_t>(args.shape.source_rows()));
  for (const auto& [source, count] : uses) {
    EXPECT_EQ(count, args.shape.swiglu ? args.shape.topk : 1) << source;
  }
}

TYPED_TEST(QmoeProblem, EdgesAreInTheData) {
  const auto device = open_host_device();
  for (const char* dtype : {"fp16", "bf16"}) {
    TypeParam problem(
        *device,
        qmoe_case<TypeParam>(
            {{"values", "edges"}, {"bias", "1"}, {"scale-block", "32"}, {"dtype", dtype}}));
    const QmoeArgs args = problem.args();
    const QmoeShape& s = args.shape;
    const auto has = [&](const uint16_t* from, int64_t count, int bits) {
      return std::find(from, from + count, bits) != from + count;
    };
    const int64_t x_size = int64_t{s.source_rows()} * s.k, columns = int64_t{s.experts} * s.n;
    EXPECT_TRUE(has(args.x, x_size, 0)) << dtype;
    EXPECT_TRUE(has(args.x, x_size, 0x8000)) << dtype;
    const int seven = s.dtype == DType::f16 ? float_to_f16(7) : float_to_bf16(7);
    const int far = s.dtype == DType::f16 ? float_to_f16(56) : float_to_bf16(56);
    for (const int magnitude : {seven, seven + 1, far, 0}) {
      EXPECT_TRUE(has(args.bias, columns, magnitude)) << dtype << " " << magnitude;
      EXPECT_TRUE(has(args.bias, columns, magnitude | 0x8000)) << dtype << " -" << magnitude;
    }
    int64_t zero_columns = 0, zero_groups = 0;
    for (int64_t column = 0; column < columns; ++column) {
      const uint16_t* scales = args.scales + column * s.groups();
      const auto zeros = std::count(scales, scales + s.groups(), 0);
      (zeros == s.groups() ? zero_columns : zero_groups) += zeros > 0;
    }
    EXPECT_GE(zero_columns, columns / 4) << dtype;
    EXPECT_GT(zero_groups, 0) << dtype << ": zero groups beside others of a column";
  }
}

TYPED_TEST(QmoeProblem, ParametersThatDoNotFitAreNamed) {
  const auto message = [](const std::map<std::string, std::string>& params) {
    return test::refusal_of([&] { TypeParam::validate(qmoe_case<TypeParam>(params)); });
  };
  using ::testing::IsSubstring;
  EXPECT_EQ(message({}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "dtype", message({{"dtype", "fp32"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "scale-block = 128 does not divide K",
                      message({{"scale-block", "128"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "scale-block", message({{"scale-block", "16"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "is odd; two codes share a byte",
                      message({{"hidden", "191"}, {"inter", "63"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk", message({{"topk", "9"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "routing", message({{"routing", "zipf"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "values", message({{"values", "ties"}}));
}

TYPED_TEST(QmoeProblem, CostCountsWeightsOfActiveExpertsOnce) {
  const auto device = open_host_device();
  const TypeParam problem(
      *device,
      qmoe_case<TypeParam>({{"routing", "hot:3:1"}, {"bias", "1"}, {"scale-block", "32"}}));
  const QmoeShape& s = problem.shape;
  EXPECT_EQ(problem.facts()[0].value, 3) << "active experts";
  EXPECT_EQ(problem.cost().flops, 2.0 * 21 * s.n * s.k);
  EXPECT_EQ(problem.cost().read_bytes,
            3.0 * s.n * (s.k / 2 + 2 * s.k / 32 + 2) + 2.0 * s.source_rows() * s.k + 8 * 21);
  EXPECT_EQ(problem.cost().write_bytes, 2.0 * 21 * s.outputs());
}

}  // namespace
}  // namespace moegate::qmoe
