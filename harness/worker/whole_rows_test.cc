// SPDX-License-Identifier: Apache-2.0
// How far apart two right outputs may be, and which rows of a comparison are named.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/worker/whole.h"

namespace moegate::test {
namespace {

TEST(AllowedApart, TwoRightOutputsAreNeverFurtherApart) {
  const Tolerance of{.rtol = 0.1, .atol = 0.5, .row = 0.04};
  const Tolerance allowed = allowed_apart(of, of.widened({2}));
  for (const double truth : {0.0, 0.1, -3.0, 100.0}) {
    const double size = std::abs(truth);
    const double out = truth + of.atol + of.rtol * size;
    for (const double sign : {-1.0, 1.0}) {
      const double reference = truth + sign * 2 * (of.atol + of.rtol * size);
      EXPECT_LE(std::abs(out - reference),
                allowed.atol + allowed.rtol * std::abs(reference) + 1e-9);
    }
  }
  EXPECT_NEAR(allowed.row, 0.12 / 0.92, 1e-9);
}

TEST(JudgeRows, OrdersTheWorstAndCountsWhatIsNotFinite) {
  std::vector<RowDistance> rows(100, {.error = 1e-8, .size = 4});
  rows[7].error = 4;
  rows[42].error = 8;
  rows[13].nonfinite = 2;
  WholeComparison whole;
  judge_rows(rows, 4, {.row = 0.01}, whole);
  EXPECT_EQ(whole.rows_over, 3);
  EXPECT_EQ(whole.nonfinite, 2);
  EXPECT_EQ(whole.worst, (std::vector<int64_t>{13, 42, 7}));
  EXPECT_NEAR(whole.worst_row, std::sqrt(2.0), 1e-9);
}

}  // namespace
}  // namespace moegate::test
