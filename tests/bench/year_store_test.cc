// SPDX-License-Identifier: Apache-2.0
// What is asked about one run, about one row of all runs or about all runs in short reads no more
// of a year than that.
#include "tests/bench/year_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/report/history.h"
#include "harness/site/site.h"
#include "harness/site/site_data.h"
#include "harness/store/query_report.h"

namespace moegate::test {
namespace {

class YearStore : public ::testing::Test {
 protected:
  Store make(const std::string& name = "year.db", int cases = 24) {
    return make_year((dir_ / name).string(), {.cases = cases,
                                              .variants = 3,
                                              .processes = 3,
                                              .nights = 12,
                                              .samples = 40,
                                              .sampled_nights = 2});
  }

  /// The tables with rows of every night that a statement runs through from their begin.
  static std::set<std::string> read_whole(Database& db, const std::string& sql) {
    std::map<int64_t, std::string> table_of;  // by root page
    Statement pages(db, "SELECT rootpage, tbl_name FROM main.sqlite_schema");
    while (pages.step()) table_of[pages.integer(0)] = pages.text(1);
    std::map<int64_t, int64_t> page_of;  // by cursor
    std::set<std::string> whole;
    Statement code(db, "EXPLAIN " + sql);
    while (code.step()) {
      const std::string opcode = code.text(1);
      const int64_t cursor = code.integer(2);
      if (opcode == "OpenRead") page_of[cursor] = code.integer(3);
      const auto page = page_of.find(cursor);
      if (page == page_of.end() || (opcode != "Rewind" && opcode != "Last")) continue;
      const std::string& table = table_of[page->second];
      if (kNightly.count(table) > 0) whole.insert(table);
    }
    return whole;
  }

  /// The questions that `work` asks, each with how often it does.
  static std::map<std::string, int> asked(Store& store, const std::function<void()>& work) {
    std::map<std::string, int> asked;
    const auto note = [](unsigned, void* counts, void* statement, void*) {
      const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
      if (sql.starts_with("SELECT") || sql.starts_with("WITH") || sql.starts_with("--"))
        ++(*static_cast<std::map<std::string, int>*>(counts))[sql];
      return 0;
    };
    sqlite3* db = store.database().handle();
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note, &asked);
    work();
    sqlite3_trace_v2(db, 0, nullptr, nullptr);
    EXPECT_FALSE(asked.empty());
    return asked;
  }

  /// Expects of each statement that `work` runs that it reads no such table as a whole.
  static void expect_narrow(Store& store, const std::function<void()>& work) {
    for (const auto& [sql, times] : asked(store, work))
      EXPECT_EQ(read_whole(store.database(), sql), std::set<std::string>{}) << sql;
  }

  static inline const std::set<std::string> kNightly = {
      "result",  "launch",    "metric_value", "sample",        "verification",
      "verdict", "row_level", "run_case",     "verified_seed", "verified_output"};
  ScratchFolder dir_;
  const ScopedVariable home_{"MOEGATE_HOME", MOEGATE_SOURCE_DIR};
};

TEST_F(YearStore, IsWholeAndTheSameEachTime) {
  Store one = make("one.db"), two = make("two.db");
  for (const char* sql :
       {"SELECT count(*) FROM result", "SELECT sum(span_ns) * 1000 FROM result",
        "SELECT sum(length(spans)) FROM sample", "SELECT count(*) FROM verified_seed",
        "SELECT sum(mean_log) * 1e6 FROM row_level"}) {
    EXPECT_EQ(one.database().integer(sql), two.database().integer(sql)) << sql;
  }
  Database& db = one.database();
  EXPECT_EQ(db.integer("SELECT count(*) FROM result"), 24 * 3 * 3 * 12);
  EXPECT_EQ(db.integer("SELECT count(*) FROM sample"), 24 * 3 * 3 * 2) << "of two nights";
  EXPECT_EQ(db.integer("SELECT sum(results) FROM process"), 24 * 3 * 3 * 12);
  EXPECT_FALSE(Statement(db, "PRAGMA foreign_key_check").step());
  const auto levels = one.levels(7);
  ASSERT_EQ(levels.size(), 24u * 3 * 3);
  EXPECT_EQ(levels[0].result.accuracy.size(), 2u);
  EXPECT_EQ(levels[0].result.seeds.size(), 6u);
  EXPECT_EQ(db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'result_series'"), 1)
      << "as the schema has it";
}

TEST_F(YearStore, AnUnpackedSampleHasItsQuantiles) {
  Store store = make();
  add_sql_functions(store.database());
  EXPECT_EQ(store.database().integer("SELECT min(length(spans)) FROM sample"), 40 * 4);
  EXPECT_EQ(store.database().integer(
                "SELECT count(*) FROM sample WHERE span_quantile(spans, 0.5) NOT BETWEEN 4900 AND "
                "5100"),
            0);
}

TEST_F(YearStore, QuestionsReadNoMoreThanTheyAreAbout) {
  Store store = make();
  ASSERT_EQ(read_whole(store.database(), "SELECT sum(span_ns) FROM result"),
            std::set<std::string>{"result"});
  std::string key;
  {
    Statement q(store.database(), "SELECT key FROM bench_case WHERE case_id = 5");
    q.step();
    key = q.text(0);
  }
  expect_narrow(store, [&] { EXPECT_EQ(read_site(store, "").rows.size(), 72u); });
  expect_narrow(store, [&] {
    EXPECT_EQ(read_history(store, {.case_pattern = "^" + key + "$", .last = 100}).size(), 3u);
  });
  expect_narrow(store, [&] { store.seconds_per_result(store.run_info(1).device, 0.5); });
  const std::string runs = read_file(find_report("runs"));
  add_sql_functions(store.database());
  ask_about(store, {{12, 5, "chain3"}});
  EXPECT_EQ(read_whole(store.database(), runs), std::set<std::string>{});
  const Table table = run_report(store, find_report("runs"), {});
  ASSERT_EQ(table.rows.size(), 12u);
  const std::string pages = std::string(MOEGATE_SOURCE_DIR) + "/reports/pages/";
  for (const char* name : {"case-spans", "case-verdicts", "case-kernels", "case-counters",
                           "case-accuracy", "case-siblings", "night-coverage"}) {
    EXPECT_EQ(read_whole(store.database(), read_file(pages + name + ".sql")),
              std::set<std::string>{})
        << name;
  }
}

// A row's page that asked for itself would make minutes of ten thousand rows.
TEST_F(YearStore, PagesOfManyRowsAskNoMoreThanThoseOfFew) {
  const auto questions = [&](const std::string& name, int cases) {
    Store store = make(name, cases);
    size_t pages = 0;
    const auto counts = asked(store, [&] {
      for (const SitePage& page : site_pages(store, {.db = name})) {
        page.make();
        ++pages;
      }
    });
    EXPECT_GT(pages, static_cast<size_t>(cases) * 3) << "each row has one";
    return counts;
  };
  const auto few = questions("few.db", 24), many = questions("many.db", 48);
  for (const auto& [sql, times] : many) {
    // What changed lately is judged, in two runs: what their outputs were found to be is looked up.
    if (sql.find("FROM verified_") != std::string::npos) continue;
    const auto at = few.find(sql);
    EXPECT_EQ(times, at == few.end() ? 0 : at->second) << sql;
  }
}

}  // namespace
}  // namespace moegate::test
