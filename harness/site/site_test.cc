// SPDX-License-Identifier: Apache-2.0
// Which pages a store has and what they say, on the store of the reports' tests.
#include "harness/site/site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/campaign/recording.h"
#include "harness/report/page.h"
#include "harness/site/site_data.h"
#include "harness/site/site_files.h"
#include "harness/store/report_fixture.h"

namespace moegate::test {
namespace {

class SiteTest : public ReportTest {
 protected:
  std::string page(const std::string& id) {
    Store store = Store::open(db_, Store::Mode::read);
    for (const SitePage& page : site_pages(store, {.db = db_})) {
      if (page.id == id) return to_markdown(page.make(), kAnyBytes);
    }
    return "";
  }
};

TEST_F(SiteTest, EveryRunOperatorAndRowHasAPage) {
  add_run(Backend::cuda);
  Store store = Store::open(db_, Store::Mode::read);
  const auto pages = site_pages(store, {.db = db_});
  EXPECT_EQ(pages[0].id, "start");
  const auto has = [&](const std::string& id) {
    return std::ranges::count(pages, id, &SitePage::id) == 1;
  };
  EXPECT_TRUE(has("night=1"));
  EXPECT_TRUE(has("operator=topk_sort&run=1"));
  EXPECT_TRUE(has("report=latency&run=1"));
  EXPECT_FALSE(has("pull-requests")) << "it has none of their suites";
  const auto rows = std::ranges::count_if(
      pages, [](const SitePage& page) { return page.id.starts_with("case="); });
  EXPECT_EQ(rows, 8);
}

TEST_F(SiteTest, LevelsThatWereWrittenDownAreThoseOfTheResults) {
  add_run(Backend::cuda);
  add_run(Backend::host);
  Store store = Store::open(db_, Store::Mode::update);
  const SiteData read = read_site(store, "");
  for (const int64_t run : {1, 2}) write_down_levels(store, run);
  store.database().execute("UPDATE result SET span_ns = 1, low_ns = 1, high_ns = 1");
  const SiteData written = read_site(store, "");
  ASSERT_EQ(read.rows.size(), 10u);
  ASSERT_EQ(written.rows.size(), read.rows.size());
  for (size_t i = 0; i < read.rows.size(); ++i) {
    const SiteRow &a = read.rows[i], &b = written.rows[i];
    EXPECT_EQ(a.key + a.op + a.variant, b.key + b.op + b.variant);
    ASSERT_EQ(a.points.size(), b.points.size()) << a.variant;
    for (size_t k = 0; k < a.points.size(); ++k) {
      const SitePoint &p = a.points[k], &q = b.points[k];
      EXPECT_EQ(std::tie(p.run, p.code, p.mean_log, p.sd_log, p.processes, p.level),
                std::tie(q.run, q.code, q.mean_log, q.sd_log, q.processes, q.level))
          << a.variant;
    }
  }
}

TEST_F(SiteTest, AStoreWithoutRunsHasNone) {
  { Store::open(db_, Store::Mode::write); }
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_THROW(site_pages(store, {.db = db_}), Error);
}

TEST_F(SiteTest, TheNightShowsWhatDidNotRun) {
  add_run(Backend::cuda);
  EXPECT_NE(page("night=1").find("signal 11"), std::string::npos);
}

TEST_F(SiteTest, TheStartCountsOutcomesWorstFirst) {
  add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) VALUES (1, 'b', 's', 'k', 'v', 'pass', 1, 1, 2, '', ''), "
          "(1, 'b', 's', 'k', 'w', 'wrong', 1, 0, 2, '', 'because')");
  const std::string start = page("start");
  EXPECT_NE(start.find("**1 wrong, 1 pass, 1 blind** of 2 rows"), std::string::npos) << start;
}

TEST_F(SiteTest, TheStartBeginsWithWhatChanged) {
  add_run(Backend::cuda);
  EXPECT_NE(page("start").find("No other run compares with run 1"), std::string::npos)
      << page("start");
  add_run(Backend::cuda);
  const std::string start = page("start");
  const size_t changes = start.find("What changed on");
  EXPECT_LT(changes, start.find("Operators on")) << start;
  EXPECT_NE(start.find("**Nothing changed** of ", changes), std::string::npos) << start;
}

TEST_F(SiteTest, AComparisonIsNoVerdictOnTheNight) {
  add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) VALUES (1, 'run 5', 's', 'k', 'v', 'regressed', 1, 1, 2, "
          "'', 'because'), (1, 'run 4', 's', 'k', 'v', 'wrong', 1, 0, 2, '', '')");
  EXPECT_NE(page("start").find("**not judged** in run"), std::string::npos) << page("start");
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) VALUES (1, 'b.tsv', 's', 'k', 'v', 'pass', 1, 0, 2, '', '')");
  EXPECT_NE(page("start").find("**1 pass** of 1 row"), std::string::npos) << page("start");
  EXPECT_EQ(page("night=1").find("because"), std::string::npos) << page("night=1");
}

TEST_F(SiteTest, AnAbIsJudgedByItsOwnComparison) {
  add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO tag (run_id, name, value) VALUES (1, 'ab', 'head'); "
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) VALUES (1, 'run 5 at c', 's', 'k', 'v', 'pass', 2, 0, 2, '', ''), "
          "(1, 'run 5', 's', 'k', 'v', 'wrong', 1, 0, 2, '', '')");
  EXPECT_NE(page("night=1").find("**1 pass** of 1 row"), std::string::npos) << page("night=1");
}

TEST_F(SiteTest, PullRequestsHaveAPageWhereThereIsARunOfOne) {
  add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE).execute("UPDATE run_case SET suite = 'pr-aiter-3526'");
  EXPECT_NE(page("pull-requests").find("pr-aiter-3526"), std::string::npos);
}

TEST_F(SiteTest, ANightExplainsItsWords) {
  add_run(Backend::cuda);
  EXPECT_EQ(page("night=1").find("blind:"), std::string::npos) << "nobody judged it";
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) VALUES (1, 'b', 's', 'k', 'v', 'pass', 1, 1, 2, '', '')");
  const std::string night = page("night=1");
  EXPECT_NE(night.find("blind: a change of 5 % could hide in the noise of the row."),
            std::string::npos)
      << night;
}

TEST_F(SiteTest, AnOlderNightLeavesOutWhatPassed) {
  for (int i = 0; i < 8; ++i) add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) SELECT run_id, 'b', 's', 'k', 'good', 'pass', 1, 0, 2, '', '' "
          "FROM run UNION ALL SELECT run_id, 'b', 's', 'k', 'bad', 'wrong', 1, 0, 2, '', '' "
          "FROM run");
  const std::string older = page("night=1"), newest = page("night=8");
  EXPECT_NE(older.find("bad"), std::string::npos);
  EXPECT_EQ(older.find("good"), std::string::npos) << older;
  EXPECT_NE(older.find("left out"), std::string::npos);
  EXPECT_NE(newest.find("good"), std::string::npos) << newest;
  EXPECT_EQ(newest.find("left out"), std::string::npos);
}

TEST_F(SiteTest, AnOlderNightThatPassedShowsWhatDidNotRun) {
  for (int i = 0; i < 8; ++i) add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, "
          "family, waiver, why) SELECT run_id, 'b', 's', 'k', 'good', 'pass', 1, 0, 2, '', '' "
          "FROM run");
  const std::string older = page("night=1");
  EXPECT_NE(older.find("**1 pass** of 1 row"), std::string::npos) << older;
  EXPECT_EQ(older.find("good"), std::string::npos);
  EXPECT_NE(older.find("signal 11"), std::string::npos);
}

TEST_F(SiteTest, FilesAreReplacedAndThePolicyNamesWhatRuns) {
  add_run(Backend::cuda);
  Store store = Store::open(db_, Store::Mode::read);
  const auto folder = std::filesystem::path(db_).parent_path() / "site";
  std::filesystem::create_directories(folder / "data");
  for (const char* file : {"99999.js", "page-99999.js", "rows-99999.js"})
    write_file_atomically(folder / "data" / file, "moegatePart({});");
  const std::vector<std::string> foreign = {"shapes.js", "99999.json", "page-1.csv", "2024.js"};
  for (const std::string& file : foreign) write_file_atomically(folder / "data" / file, "mine");
  std::filesystem::create_directories(folder / "data" / "1.js");
  write_site(folder, site_pages(store, {.db = db_}));
  for (const char* file : {"99999.js", "page-99999.js", "rows-99999.js"})
    EXPECT_FALSE(is_file(folder / "data" / file)) << file;
  for (const std::string& file : foreign) EXPECT_TRUE(is_file(folder / "data" / file)) << file;
  EXPECT_TRUE(is_directory(folder / "data" / "1.js"));
  const std::string html = read_file(folder / "index.html");
  EXPECT_NE(html.find("default-src 'none'; script-src 'self' 'sha256-"), std::string::npos);
  EXPECT_EQ(html.find("unsafe"), std::string::npos);
  EXPECT_EQ(html.find("{{"), std::string::npos);
}

TEST_F(SiteTest, ASiteThatDoesNotGetDoneLeavesTheOneBeforeWhole) {
  add_run(Backend::cuda);
  Store store = Store::open(db_, Store::Mode::read);
  const auto folder = std::filesystem::path(db_).parent_path() / "site";
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "data"))
      all[entry.path().filename()] = read_file(entry.path());
    return all;
  };
  auto pages = site_pages(store, {.db = db_});
  write_site(folder, pages);
  const std::string index = read_file(folder / "index.html");
  const auto before = files();
  ASSERT_GT(before.size(), 3u);

  for (SitePage& page : pages) page.title += " anew";
  auto dies = pages;
  dies.back().make = []() -> Page { throw Error(Exit::store, "the disk is full"); };
  EXPECT_THROW(write_site(folder, dies), Error);
  EXPECT_EQ(read_file(folder / "index.html"), index);
  const auto there = files();
  for (const auto& [name, text] : before) {
    ASSERT_TRUE(there.contains(name)) << name;
    EXPECT_EQ(there.at(name), text) << name;
  }
  write_site(folder, pages);
  const std::string after = read_file(folder / "index.html");
  for (const auto& [name, text] : files()) {
    EXPECT_FALSE(before.contains(name)) << name;
    const size_t content = name.rfind('-') + 1;
    EXPECT_NE(after.find('"' + name.substr(content, 8) + '"'), std::string::npos) << name;
  }
}

using Histories = std::set<std::pair<size_t, int>>;

/// Rows of so many runs in one place, with noise of 0.3 %, that step up in the middle.
class SiteStepsTest : public testing::Test {
 protected:
  void add_row(int runs, double step) {
    while (data_.runs.size() < static_cast<size_t>(runs)) data_.runs.emplace_back();
    SiteRow& row = data_.rows.emplace_back();
    for (int i = 0; i < runs; ++i) {
      const auto bits = random_bits(1, data_.rows.size(), static_cast<uint64_t>(i));
      SitePoint point;
      point.run = static_cast<uint32_t>(i);
      point.level = true;
      point.mean_log = static_cast<float>(0.003 * (static_cast<double>(bits % 1000) / 500 - 1) +
                                          (i < runs / 2 ? 0 : step));
      row.points.push_back(point);
    }
  }
  Points points(size_t row) const { return histories_of(data_, data_.rows[row]).at(0); }

  SiteData data_;
};

TEST_F(SiteStepsTest, AreFoundAmongTheNewestPoints) {
  add_row(40, 0.05);
  add_row(200, 0.05);
  const auto steps = steps_of(points(0), true);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps.begin()->first, 20u);
  EXPECT_NEAR(steps.begin()->second, std::expm1(0.05), 0.003);
  EXPECT_TRUE(steps_of(points(1), true).empty()) << "it was 100 runs ago";
}

TEST_F(SiteStepsTest, OfACodeThatChangedNeedTwoRuns) {
  for (const double step : {0.1, 0.1, 0.0}) add_row(4, step);
  for (const size_t row : {0, 2}) {
    for (size_t i = 0; i < 4; ++i) data_.rows[row].points[i].code = i < 2 ? 1 : 2;
  }
  for (const bool searched : {false, true}) {
    EXPECT_EQ(steps_of(points(0), searched).size(), 1u);
    EXPECT_TRUE(steps_of(points(1), searched).empty()) << "four runs of one code are too few";
    EXPECT_TRUE(steps_of(points(2), searched).empty()) << "the code changed, the level did not";
  }
}

TEST_F(SiteStepsTest, AreLookedForWhereTheyAreClearestWithinTheWork) {
  for (const double step : {0.03, 0.0, 0.2, 0.1}) add_row(20, step);
  add_row(10, 0.08);
  const auto searched = [&](size_t work) { return plan_search(data_, work).searched; };
  EXPECT_EQ(searched(4 * 400), (Histories{{0, 0}, {2, 0}, {3, 0}, {4, 0}})) << "row 1 has no step";
  EXPECT_EQ(searched(2 * 400), (Histories{{2, 0}, {3, 0}}));
  EXPECT_EQ(searched(2 * 400 + 100), (Histories{{2, 0}, {3, 0}, {4, 0}}))
      << "half the points, a quarter of the work";
  EXPECT_TRUE(searched(399).empty());
}

TEST_F(SiteStepsTest, AreLeftOutOnlyWhereThereMayBeSome) {
  for (const double step : {0.03, 0.0, 0.2}) add_row(20, step);
  EXPECT_TRUE(plan_search(data_, 2 * 400).left_out.empty());
  EXPECT_EQ(plan_search(data_, 400).left_out, (Histories{{0, 0}}));
  EXPECT_EQ(plan_search(data_, 0).left_out, (Histories{{0, 0}, {2, 0}}));
}

TEST_F(SiteStepsTest, ALevelThatNeverMovesHasNone) {
  add_row(20, 0);
  for (SitePoint& p : data_.rows[0].points) p.mean_log = 1.25;
  EXPECT_TRUE(plan_search(data_).searched.empty());
  for (size_t i = 10; i < 20; ++i) data_.rows[0].points[i].mean_log = 2.5;
  EXPECT_EQ(plan_search(data_).searched, (Histories{{0, 0}}))
      << "without noise there is nothing clearer";
}

TEST_F(SiteStepsTest, RunsThatDoNotCompareAreHistoriesOfTheirOwn) {
  add_row(40, 0.05);
  for (size_t i = 20; i < 40; ++i) data_.runs[i].conditions = 1;
  EXPECT_EQ(histories_of(data_, data_.rows[0]).size(), 2u);
  EXPECT_TRUE(plan_search(data_).searched.empty()) << "the step is another device's";
}

TEST_F(SiteStepsTest, OfOneCommitWhoseCodeChangedAreTheEnvironments) {
  add_row(4, 0.1);
  for (size_t i = 0; i < 4; ++i) data_.rows[0].points[i].code = i < 2 ? 1 : 2;
  for (SiteRun& run : data_.runs) run.info.git_sha = "abc";
  const ScratchFolder folder;
  Store store = Store::open((folder / "s.sqlite").string(), Store::Mode::write);
  const auto found = [&] {
    RunPairs pairs;
    return steps_of_environment(store, data_, points(0), steps_of(points(0), true), pairs);
  };
  EXPECT_EQ(found(), (std::set<size_t>{2}));
  data_.runs[2].info.git_sha = "def";
  EXPECT_TRUE(found().empty()) << "the commit changed, too";
  data_.runs[2].info.git_sha = "abc";
  for (int row = 0; row < 3; ++row) {
    add_row(4, 0.1);
    for (SitePoint& p : data_.rows.back().points) p.code = 7;
  }
  EXPECT_TRUE(found().empty()) << "rows whose code did not change moved alike";
}

}  // namespace
}  // namespace moegate::test
