// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU; which cases they take, and which rows keep
// their order.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/worker/measure.h"
#include "kernels/moe_align/moe_align_testing.h"

namespace moegate::moe_align {
namespace {

const Variant* cuda_variant(const std::string& name) {
  for (const Variant& v : all_variants()) {
    if (v.op == MoeAlign::kOp && v.backend == Backend::cuda && v.name == name) return &v;
  }
  return nullptr;
}

using CudaMoeAlign = check::CudaVariants;

// Tokens times 32 rows: 1, 2 and 4 rows of a thread in teams of a block (up to 4096 rows), then 1
// to 16 in teams of a cluster; one less and one more than each holds.
TEST_F(CudaMoeAlign, VariantsAgreeWithTheTruth) {
  for (const char* tokens : {"1", "31", "32", "33", "64", "65", "128", "129", "512", "513", "1024",
                             "1025", "2049", "4097", "8192"}) {
    expect_right(
        moe_align_case({{"tokens", tokens}, {"experts", "33"}, {"topk", "32"}, {"block", "16"}}));
  }
}

TEST_F(CudaMoeAlign, ExpertsBlocksAndForeignIds) {
  for (const char* experts : {"6", "32", "160", "255", "256", "257", "1024"}) {
    for (const char* tokens : {"1", "9", "700", "1100"}) {
      for (const char* ids : {"valid", "some_skipped"}) {
        expect_right(moe_align_case({{"tokens", tokens},
                                     {"experts", experts},
                                     {"topk", "6"},
                                     {"block", "64"},
                                     {"ids", ids}}));
      }
    }
  }
}

TEST_F(CudaMoeAlign, OneExpertHasAll) {
  for (const char* tokens : {"1", "64", "4096", "4097", "20000"}) {
    for (const char* block : {"1", "16", "128"}) {
      expect_right(moe_align_case(
          {{"tokens", tokens}, {"topk", "1"}, {"block", block}, {"routing", "hot:1:1"}}));
    }
  }
}

TEST_F(CudaMoeAlign, RedundantCountKeepsTheOrderOfRows) {
  const Variant& v = *cuda_variant("redundant_count");
  for (const char* tokens : {"300", "3000"}) {
    MoeAlign problem(*device_, moe_align_case({{"tokens", tokens}, {"ids", "some_skipped"}}));
    problem.poison();
    v.launch(problem, {device_->stream(), device_->facts()});
    device_->synchronize();
    const MoeAlignArgs args = problem.args();
    int32_t padded = 0;
    device_->download(&padded, args.num_tokens_post_padded, sizeof padded);
    std::vector<int32_t> rows(static_cast<size_t>(padded)), ids;
    device_->download(rows.data(), args.sorted_token_ids, rows.size() * sizeof(int32_t));
    ids.resize(static_cast<size_t>(problem.shape.rows()));
    device_->download(ids.data(), args.topk_ids, ids.size() * sizeof(int32_t));
    EXPECT_EQ(rows, moe_align_truth(problem.shape, ids).sorted_token_ids);
  }
}

TEST(CudaMoeAlignCases, OneBlockNeedsRoomForItsTables) {
  const Variant* v = cuda_variant("one_block");
  if (!v) GTEST_SKIP() << "built without CUDA";
  DeviceFacts facts;
  facts.shared_per_block = 232448;  // H200
  EXPECT_EQ(v->unsupported(moe_align_case({{"experts", "240"}}), facts), "");
  EXPECT_NE(v->unsupported(moe_align_case({{"experts", "241"}}), facts), "");
}

TEST(CudaMoeAlignCases, RedundantCountTakesWhatRegistersHold) {
  const Variant* v = cuda_variant("redundant_count");
  if (!v) GTEST_SKIP() << "built without CUDA";
  const auto rows = [](const char* tokens) {
    return moe_align_case({{"tokens", tokens}, {"topk", "1"}});
  };
  EXPECT_EQ(v->unsupported(rows("262144"), {}), "");
  EXPECT_NE(v->unsupported(rows("262145"), {}), "");
  EXPECT_EQ(v->path(rows("2048"), {}), "teams of a block");
  EXPECT_EQ(v->path(rows("2049"), {}), "teams of a cluster");
}

}  // namespace
}  // namespace moegate::moe_align
