// SPDX-License-Identifier: Apache-2.0
// Alignment against answers worked out by hand.
#include "kernels/moe_gemm/aligned_rows.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"

namespace moegate::moe_gemm {
namespace {

using Ids = std::vector<int32_t>;

TEST(AlignedRows, GroupsByExpertAndPads) {
  // Two tokens of three experts each, four experts, blocks of 2.
  const AlignedRows a = align_rows(Ids{3, 0, 2, 0, 3, 1}, 4, 2);
  EXPECT_EQ(a.padded_rows, 8);
  EXPECT_EQ(a.sorted_token_ids, (Ids{1, 3, 5, 6, 2, 6, 0, 4, 6, 6}));
  EXPECT_EQ(a.expert_ids, (Ids{0, 1, 2, 3, -1}));
}

TEST(AlignedRows, ExpertsWithoutRowsTakeNoBlock) {
  const AlignedRows a = align_rows(Ids{4, 4, 4, 1}, 6, 2);
  EXPECT_EQ(a.padded_rows, 6);
  EXPECT_EQ(a.sorted_token_ids, (Ids{3, 4, 0, 1, 2, 4, 4, 4}));
  EXPECT_EQ(a.expert_ids, (Ids{1, 4, 4, -1}));
}

TEST(AlignedRows, PlacesSayWhereRowsStand) {
  EXPECT_EQ(sorted_places(align_rows(Ids{3, 0, 2, 0, 3, 1}, 4, 2), 6), (Ids{6, 0, 4, 1, 7, 2}));
}

TEST(AlignedRows, AFullBlockIsNotPadded) {
  const AlignedRows a = align_rows(Ids{1, 1, 1, 1}, 2, 4);
  EXPECT_EQ(a.padded_rows, 4);
  EXPECT_EQ(a.expert_ids.front(), 1);
  EXPECT_EQ(a.expert_ids.back(), -1);
}

TEST(MaskedRows, StandAtTheBeginningOfTheirExpertsPart) {
  EXPECT_EQ(masked_places(Ids{3, 0, 2, 0, 3, 1}, 4, 2), (Ids{6, 0, 4, 1, 7, 2}));
  EXPECT_THROW(masked_places(Ids{0, 0, 0}, 4, 2), Error);
}

TEST(MaskedRows, HaveRoomForOtherRoutings) {
  EXPECT_EQ(masked_capacity(Ids(100, 1), 4, 400), 256) << "200 rows, in whole tiles of 128";
  EXPECT_EQ(masked_capacity(Ids(100, 1), 4, 100), 128) << "an expert has a token once";
}

TEST(AlignedRows, CapacityIsTheWorstCase) {
  EXPECT_EQ(aligned_capacity(6, 4, 2), 10);     // every expert pads one row
  EXPECT_EQ(aligned_capacity(3, 256, 16), 48);  // fewer rows than experts: a block each
  EXPECT_EQ(aligned_capacity(5, 3, 1), 5);
  EXPECT_EQ(align_rows(Ids{7, 0, 3}, 8, 16).padded_rows, 48);
}

}  // namespace
}  // namespace moegate::moe_gemm
