// SPDX-License-Identifier: Apache-2.0
// Folders of recorded ids, and recorded counts. routing_test.cc has single files of ids.
#include "harness/kernel/recorded_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "harness/base/test_fixture.h"
#include "harness/kernel/expert_rank.h"

namespace moegate::test {
namespace {

using Ids = std::vector<std::vector<int>>;
using ::testing::IsSubstring;

class RecordedRouting : public testing::Test {
 protected:
  /// A .npy file of int32 values of a shape such as "(2, 3)".
  void write(const std::string& name, const std::string& shape,
             const std::vector<int32_t>& values) const {
    std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': " + shape + ", }";
    text.resize(117, ' ');
    std::ofstream out(folder_ / name, std::ios::binary);
    out << "\x93NUMPY\x01" << '\0' << 'v' << '\0' << text << '\n';  // 'v' = 118 header bytes
    for (const int32_t value : values) {
      for (int i = 0; i < 4; ++i) out << static_cast<char>(static_cast<uint32_t>(value) >> (8 * i));
    }
  }
  /// `rows` rows of one id each: first, first + 1, ...
  void write_layer(const std::string& name, int first, int rows) const {
    std::vector<int32_t> ids;
    for (int row = 0; row < rows; ++row) ids.push_back(first + row);
    write(name, "(" + std::to_string(rows) + ", 1)", ids);
  }
  void state(const std::string& facts) const { std::ofstream(folder_ / "routing.json") << facts; }
  std::string folder() const { return folder_.path().string() + "/"; }
  /// The ids of so many tokens that problem set `set` of seed `seed` has.
  Ids ids(int tokens, uint64_t seed, uint64_t set) const {
    return recorded_ids(folder(), {tokens, 100, 1}, seed + set * kSetsApart);
  }
  std::string refusal(int tokens) const {
    return refusal_of([&] { ids(tokens, 0, 0); });
  }

  const ScratchFolder folder_;
};

TEST_F(RecordedRouting, AProblemSetHasTheFileOfItsNumberAfterTheSeed) {
  write_layer("layer_10.npy", 10, 2);
  write_layer("layer_2.npy", 2, 2);
  write_layer("layer_3.npy", 3, 2);
  std::ofstream(folder_ / "notes.txt") << "no recording";
  EXPECT_EQ(ids(2, 0, 0), (Ids{{2}, {3}}));
  EXPECT_EQ(ids(2, 0, 1), (Ids{{3}, {4}}));
  EXPECT_EQ(ids(2, 0, 2), (Ids{{10}, {11}}));
  EXPECT_EQ(ids(2, 1, 0), (Ids{{3}, {4}})) << "starts at the seed";
  EXPECT_EQ(ids(2, 2, 1), (Ids{{2}, {3}})) << "the first again";
  // Without the slash, too; and a seed of other activations, which are far apart from all sets'.
  EXPECT_EQ(recorded_ids(folder_.path().string(), {2, 100, 1}, 0), (Ids{{2}, {3}}));
  EXPECT_EQ(ids(2, std::numeric_limits<int64_t>::max(), 0).size(), 2u);
}

TEST_F(RecordedRouting, AfterTheLastFileComeOtherRowsOfTheFirst) {
  write_layer("a.npy", 0, 5);
  write_layer("b.npy", 50, 5);
  EXPECT_EQ(ids(2, 0, 1), (Ids{{50}, {51}}));
  EXPECT_EQ(ids(2, 0, 2), (Ids{{2}, {3}}));
  EXPECT_EQ(ids(2, 0, 3), (Ids{{52}, {53}}));
  EXPECT_EQ(ids(2, 0, 4), (Ids{{0}, {1}})) << "of 5 rows, two times two";
  EXPECT_EQ(ids(5, 0, 4), (Ids{{0}, {1}, {2}, {3}, {4}}));
}

TEST_F(RecordedRouting, AForwardPassOfSoManyTokensIsReplayedWhole) {
  write_layer("a.npy", 0, 10);
  state(R"({"passes": [0, 4, 5, 7, 8], "engine": "none"})");
  EXPECT_EQ(ids(2, 0, 0), (Ids{{5}, {6}})) << "the first pass of two, which begins at row 5";
  EXPECT_EQ(ids(2, 0, 1), (Ids{{8}, {9}})) << "the last one ends with the file";
  EXPECT_EQ(ids(1, 0, 1), (Ids{{7}}));
  EXPECT_EQ(ids(3, 0, 1), (Ids{{3}, {4}, {5}})) << "no pass has three";
  state(R"({"engine": "none"})");
  EXPECT_EQ(ids(2, 0, 1), (Ids{{2}, {3}}));
}

TEST_F(RecordedRouting, RefusesFoldersThatAreNone) {
  EXPECT_PRED_FORMAT2(IsSubstring, "has no .npy file; `python3 -m moegate.routing import`",
                      refusal(1));
  write_layer("a.npy", 0, 3);
  EXPECT_PRED_FORMAT2(IsSubstring, "a.npy' has 3 rows, but the case has tokens = 4", refusal(4));
  for (const std::string passes : {"[]", "[1]", "[0, 2, 2]", "[0, -1]", "[0, 1.5]", "7"}) {
    state("{\"passes\": " + passes + "}");
    EXPECT_PRED_FORMAT2(IsSubstring, "routing.json: 'passes' is no list of rows", refusal(1))
        << passes;
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "'/nonexistent/d/' does not exist", refusal_of([] {
                        recorded_ids("/nonexistent/d/", {1, 8, 1}, 0);
                      }));
  EXPECT_PRED_FORMAT2(IsSubstring, "'no_such.npy' does not exist; check the path (a relative one",
                      refusal_of([] {
                        recorded_ids("no_such.npy", {1, 8, 1}, 0);
                      }));
}

TEST_F(RecordedRouting, LoadsGiveEachExpertItsShare) {
  write("load.npy", "(8,)", {8000, 1000, 1000, 1000, 1000, 0, 0, 4000});
  std::vector<int> drawn(8);
  for (const int32_t id : routed_experts("load:" + folder() + "load.npy", {16000, 8, 1}, 1)) {
    ++drawn.at(static_cast<size_t>(id));
  }
  EXPECT_NEAR(drawn[0], 8000, 300);
  EXPECT_NEAR(drawn[3], 1000, 150);
  EXPECT_EQ(drawn[5], 0);
  EXPECT_NEAR(drawn[7], 4000, 250);
}

TEST_F(RecordedRouting, EqualLoadsAreUniformHoweverLarge) {
  write("load.npy", "(4,)", std::vector<int32_t>(4, 2000000000));
  EXPECT_EQ(routing_scores("load:" + folder() + "load.npy", {100, 4, 2}, 1),
            routing_scores("uniform", {100, 4, 2}, 1));
}

TEST_F(RecordedRouting, LoadsOfAnySizeAreToldApart) {
  // What a recording of days counts, and one token in all of them.
  write("load.npy", "(4,)", {2000000000, 1, 1000000000, 0});
  for (const double score : routing_scores("load:" + folder() + "load.npy", {100, 4, 2}, 1)) {
    ASSERT_LE(std::abs(score), 8);
  }
  const auto ids = routed_experts("load:" + folder() + "load.npy", {100, 4, 3}, 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 3), 0) << "an expert without tokens gets none";
  EXPECT_EQ(skew_of(routed_experts("shared:load:" + folder() + "load.npy", {100, 5, 2}, 1), 5)
                .max_over_mean,
            2.5)
      << "the shared one for each token, of two";
}

TEST_F(RecordedRouting, RefusesLoadsThatAreNone) {
  const auto refused = [&](int topk) {
    return refusal_of([&] { recorded_loads(folder() + "load.npy", {1, 4, topk}); });
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "load.npy' does not exist", refused(1));
  write("load.npy", "(2, 2)", {1, 2, 3, 4});
  EXPECT_PRED_FORMAT2(IsSubstring, "has shape [2, 2], but the case has experts = 4", refused(1));
  write("load.npy", "(3,)", {1, 2, 3});
  EXPECT_PRED_FORMAT2(IsSubstring, "has shape [3, 1], but the case has experts = 4", refused(1));
  write("load.npy", "(4,)", {1, 2, -3, 4});
  EXPECT_PRED_FORMAT2(IsSubstring, "has the count -3", refused(1));
  write("load.npy", "(4,)", {1, 2, 0, 0});
  EXPECT_EQ(refused(2), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "has 2 experts with a count above 0, but the case has topk = 3",
                      refused(3));
}

TEST_F(RecordedRouting, AMapSaysWhichRankHasAnExpert) {
  const auto rank = [&](const std::string& of) {
    Case c;
    c.params = {{"experts", "6"}, {"rank", of + "@" + folder() + "map.npy"}};
    return ExpertRank::of(c);
  };
  const auto refused = [&] { return refusal_of([&] { rank("0/3"); }); };
  EXPECT_PRED_FORMAT2(IsSubstring, "map.npy' does not exist", refused());
  write("map.npy", "(6,)", {2, 0, 1, 1, 0, 2});
  const std::vector<int32_t> ids = {0, 1, 2, 3, 4, 5, -1, 6, 1};
  EXPECT_EQ(rank("0/3").own(ids), (std::vector<int32_t>{-1, 0, -1, -1, 1, -1, -1, -1, 0}));
  EXPECT_EQ(rank("1/3").own(ids), (std::vector<int32_t>{-1, -1, 0, 1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(rank("2/3").own(ids), (std::vector<int32_t>{0, -1, -1, -1, -1, 1, -1, -1, -1}));
  ExpertRank busiest = rank("busiest/3");
  busiest.find({0, 1, 5, 2, 6});
  EXPECT_EQ(busiest.rank, 2);

  write("map.npy", "(2, 3)", {0, 1, 0, 1, 0, 1});
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "has shape [2, 3], but the case has experts = 6; name the rank of each",
                      refused());
  write("map.npy", "(6,)", {0, 1, 2, 0, 1, 3});
  EXPECT_PRED_FORMAT2(IsSubstring, "map.npy' [6]: expert 5 has rank 3, which is not in [0, 3)",
                      refused());
  write("map.npy", "(6,)", {0, 1, 2, 0, 1, 1});
  EXPECT_PRED_FORMAT2(IsSubstring, "gives rank 1 3 experts; give every rank 2 of 6", refused());
}

}  // namespace
}  // namespace moegate::test
