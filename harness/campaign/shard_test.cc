// SPDX-License-Identifier: Apache-2.0
// Shards: who measures which case, and what a task does that is started again.
#include <csignal>

#include "harness/base/test_fixture.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/runner.h"

namespace moegate::test {
namespace {

class ShardTest : public CampaignTest {
 protected:
  ShardTest() {
    options_.campaign = std::string(32, 'c');
    options_.shards = 2;
    options_.rounds = 2;
    std::string rows;
    for (int i = 1; i <= 40; ++i) rows += fmt::format("{}{}", i == 1 ? "" : ", ", i);
    write_suite("op = fake\n[a]\nrows = " + rows + "\n");
  }
  /// Keys of a shard's cases of a suite with so many.
  std::set<std::string> keys(int shard, int shards, int cases) {
    std::vector<PlannedCase> planned;
    for (int i = cases - 1; i >= 0; --i) {  // so that one more comes first
      planned.push_back({{"s", "", "op", {{"rows", std::to_string(i)}}, {}}, {"v"}});
    }
    options_.shard = shard;
    options_.shards = shards;
    std::set<std::string> found;
    for (const PlannedCase& c : part_of(planned, options_)) found.insert(c.spec.key());
    return found;
  }
  std::string refusal() {
    return refusal_of([&] { run_suites(options_, 0, fake_); });
  }
};

TEST_F(ShardTest, ACaseMoreMovesNoOther) {
  constexpr int kShards = 7, kCases = 500;
  size_t all = 0, largest = 0;
  for (int shard = 0; shard < kShards; ++shard) {
    const auto before = keys(shard, kShards, kCases), after = keys(shard, kShards, kCases + 50);
    EXPECT_TRUE(std::ranges::includes(after, before)) << shard;
    all += before.size();
    largest = std::max(largest, before.size());
  }
  EXPECT_EQ(all, kCases) << "each in one shard";
  EXPECT_LT(largest, 1.5 * kCases / kShards);
}

TEST_F(ShardTest, ACaseIsInTheSameShardForEver) {
  const auto shard = [](const char* rows) {
    return shard_of({"s", "", "op", {{"rows", rows}}, {}}, 1000);
  };
  EXPECT_EQ(shard("1"), 77);
  EXPECT_EQ(shard("2"), 752);
}

TEST_F(ShardTest, ColdAndWarmOfACaseAreInOne) {
  for (int i = 0; i < 50; ++i) {
    Case c{"s", "", "op", {{"cache", "cold"}, {"rows", std::to_string(i)}}, {{"cache", "cold"}}};
    const int cold = shard_of(c, 100);
    c.params["cache"] = "warm";
    EXPECT_EQ(shard_of(c, 100), cold) << i;
  }
}

TEST_F(ShardTest, ATaskThatIsStartedAgainFinishesItsRun) {
  fake_.program("").touch = [seen = 0](const Request&, Result&) mutable {
    if (++seen == 5) raise(SIGINT);
  };
  const Tally first = run_suites(options_, 0, fake_);
  EXPECT_EQ(first.exit(), Exit::interrupted);
  fake_.program("").touch = nullptr;
  const Tally second = run_suites(options_, 0, fake_);
  EXPECT_EQ(second.run, first.run);
  EXPECT_EQ(second.exit(), Exit::ok);
  const RunInfo done = store().run_info(first.run);
  EXPECT_EQ(done.status, "complete");
  EXPECT_EQ(done.campaign, options_.campaign);
  EXPECT_EQ(done.shard, 1);
  EXPECT_EQ(done.shards, 2);
  const size_t rows = store().levels(first.run).size();
  EXPECT_EQ(rows, store().done(first.run).size()) << "none twice";

  store().database().execute("UPDATE run SET finished = 'then'");
  const Tally third = run_suites(options_, 0, fake_);
  EXPECT_EQ(third.run, first.run);
  EXPECT_TRUE(third.counts.empty());
  EXPECT_EQ(store().levels(first.run).size(), rows);
  EXPECT_EQ(store().run_info(first.run).finished, "then") << "it is left alone";

  options_.shard = 1;
  EXPECT_NE(run_suites(options_, 0, fake_).run, first.run) << "the other shard";
}

TEST_F(ShardTest, OnAnotherGpuItBeginsAnew) {
  fake_.program("").touch = [seen = 0](const Request&, Result&) mutable {
    if (++seen == 5) raise(SIGINT);
  };
  const Tally first = run_suites(options_, 0, fake_);
  fake_.program("").touch = nullptr;
  fake_.program("").hello.device.uuid = "GPU-another";
  const Tally second = run_suites(options_, 0, fake_);
  EXPECT_NE(second.run, first.run);
  EXPECT_EQ(store().run_info(second.run).status, "complete");
  EXPECT_EQ(store().run_info(first.run).status, "interrupted");
  EXPECT_EQ(run_suites(options_, 0, fake_).run, second.run) << "the complete one is the shard";
}

TEST_F(ShardTest, OtherOptionsAreNoPartOfTheCampaign) {
  run_suites(options_, 0, fake_);
  options_.filter = "rows=3";
  EXPECT_NE(refusal().find("has other options"), std::string::npos);
  options_.campaign = std::string(32, 'd');
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(ShardTest, OfACampaignAShardMayBeEmpty) {
  options_.filter = "rows=7$";
  for (options_.shard = 0; options_.shard < 2; ++options_.shard) {
    const Tally tally = run_suites(options_, 0, fake_);
    EXPECT_EQ(tally.exit(), Exit::ok);
    EXPECT_EQ(store().run_info(tally.run).status, "complete");
  }
  EXPECT_EQ(store().database().integer("SELECT count(DISTINCT run_id) FROM process"), 1);
  options_.campaign.clear();
  int empty = 0;
  for (options_.shard = 0; options_.shard < 2; ++options_.shard) {
    try {
      run_suites(options_, 0, fake_);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::coverage);
      ++empty;
    }
  }
  EXPECT_EQ(empty, 1) << "of a selection that is nobody's part nothing is left";
}

}  // namespace
}  // namespace moegate::test
