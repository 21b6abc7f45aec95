// SPDX-License-Identifier: Apache-2.0
// Reports about many rows: each row has its own lines, in whatever order it is asked for.
#include "harness/store/row_report.h"

#include "harness/base/files.h"
#include "harness/store/report_fixture.h"

namespace moegate {
namespace {

class RowReportTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    add_run(Backend::cuda);
    store_.emplace(Store::open(db_, Store::Mode::read));
    // Place 1 is of a variant that the run has not.
    ask_about(*store_, {{1, 1, "chain3"}, {1, 1, "absent"}, {1, 2, "fused"}, {1, 2, "broken"}});
  }
  RowReport report(const std::string& sql) {
    const fs::path path = fs::path(db_).parent_path() / "own.sql";
    write_file_atomically(path, sql);
    return {*store_, path};
  }
  static std::string texts(const Table& table) {
    std::string all;
    for (const auto& row : table.rows) all += row[0].text + " ";
    return all;
  }

  std::optional<Store> store_;
};

constexpr const char* kRounds =
    "SELECT place, a.variant || round AS name FROM asked_result JOIN asked a USING (place) "
    "ORDER BY place, round";

TEST_F(RowReportTest, EachPlaceHasItsOwnLines) {
  RowReport rounds = report(kRounds);
  EXPECT_EQ(texts(rounds.of(0)), "chain30 chain31 chain32 ");
  EXPECT_EQ(texts(rounds.of(1)), "");
  EXPECT_EQ(rounds.of(1).columns, std::vector<std::string>{"name"});
  EXPECT_EQ(texts(rounds.of(3)), "broken0 broken1 broken2 ") << "one may be left out";
  EXPECT_EQ(texts(rounds.of(2)), "fused0 fused1 fused2 ") << "back again";
  EXPECT_EQ(texts(rounds.of(9)), "");
}

TEST_F(RowReportTest, TheFirstResultIsKnown) {
  const auto first = first_results(*store_, 5);
  Statement q(store_->database(),
              "SELECT min(result_id) FROM result WHERE case_id = 2 AND variant = 'fused'");
  ASSERT_TRUE(q.step());
  EXPECT_EQ(first[2], q.integer(0));
  EXPECT_EQ(first[1], 0);
  EXPECT_EQ(first[4], 0);
}

TEST_F(RowReportTest, AskingAgainForgetsWhatWasAsked) {
  ask_about(*store_, {{1, 2, "fused"}});
  RowReport rounds = report(kRounds);
  EXPECT_EQ(texts(rounds.of(0)), "fused0 fused1 fused2 ");
  EXPECT_EQ(texts(rounds.of(2)), "");
}

TEST_F(RowReportTest, WhatIsNoSuchReportIsRefused) {
  EXPECT_THROW(report("SELECT variant, place FROM asked"), Error) << "place is not the first";
  EXPECT_THROW(report("DELETE FROM asked"), Error);
  EXPECT_THROW(report("SELECT place, key, key FROM asked"), Error);
  RowReport falling = report("SELECT place, variant FROM asked ORDER BY place DESC");
  EXPECT_THROW(falling.of(3), Error);
}

TEST_F(RowReportTest, TheStoreStaysReadOnly) {
  EXPECT_THROW(store_->database().execute("DELETE FROM result"), Error);
}

}  // namespace
}  // namespace moegate
