// SPDX-License-Identifier: Apache-2.0
// A question about one run reads the rows of that run, however many runs the store holds.
#include <memory>
#include <set>

#include "harness/base/files.h"
#include "harness/store/crash_fixture.h"
#include "harness/store/report_fixture.h"
#include "harness/store/row_profiles.h"

namespace moegate::test {
namespace {

class StorePlanTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    for (int run = 0; run < 20; ++run) add_run(run % 2 == 0 ? Backend::cuda : Backend::host);
    store_ = std::make_unique<Store>(Store::open(db_, Store::Mode::update));
    store_->database().execute(
        "INSERT INTO verified_seed (verification_id, seed, hash, rel_l2, worst_row, bias) "
        "SELECT verification_id, 0, '0', 0, 0, 0 FROM verification; "
        "UPDATE result SET verified_checksum = 0");
    store_->end_run(20, "complete");
    store_ = std::make_unique<Store>(Store::open(db_, Store::Mode::read));
    Statement q(store_->database(), "SELECT rootpage, name FROM sqlite_schema");
    while (q.step()) name_of_[q.integer(0)] = q.text(1);
    Statement t(store_->database(), "SELECT rootpage, tbl_name FROM sqlite_schema");
    while (t.step()) table_of_[t.integer(0)] = t.text(1);
  }

  /// Expects of the compiled statement that it runs through no table or index that grows with every
  /// run, and that it looks up what it is about in one of `by`.
  void expect_one_run(const std::string& what, const std::string& sql,
                      const std::set<std::string>& by = {"process_run"}) {
    std::map<int64_t, int64_t> page_of;  // cursor -> root page
    bool by_run = false;
    Statement code(store_->database(), "EXPLAIN " + sql);
    while (code.step()) {
      const std::string opcode = code.text(1);
      const int64_t cursor = code.integer(2);
      if (opcode == "OpenRead") page_of[cursor] = code.integer(3);
      const auto page = page_of.find(cursor);
      if (page == page_of.end()) continue;
      by_run |= opcode == "SeekGE" && by.count(name_of_[page->second]) > 0;
      if (opcode != "Rewind" && opcode != "Last") continue;
      EXPECT_EQ(kGrowing.count(table_of_[page->second]), 0u)
          << what << " reads all of " << name_of_[page->second] << ": " << sql;
    }
    EXPECT_TRUE(by_run) << what << ": " << sql;
  }

  static inline const std::set<std::string> kGrowing = {
      "process", "result",       "verification", "verified_output", "verified_seed",
      "launch",  "metric_value", "sample",       "verdict"};
  CrashVfs vfs_;  // for its speed
  std::unique_ptr<Store> store_;
  std::map<int64_t, std::string> name_of_, table_of_;  // of a root page
};

TEST_F(StorePlanTest, TheStoresOwnQuestions) {
  std::set<std::string> asked;
  const auto note = [](unsigned, void* set, void* statement, void*) {
    const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    if (sql.starts_with("SELECT")) static_cast<std::set<std::string>*>(set)->insert(sql);
    return 0;
  };
  sqlite3* db = store_->database().handle();
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note, &asked);
  int levels = 0;
  store_->each_level(7)([&](const Level&) { ++levels; });
  EXPECT_GT(levels, 0);
  EXPECT_EQ(asked.size(), 6u) << "a verdict reads neither launches nor metrics";
  EXPECT_FALSE(store_->levels(7).empty());
  EXPECT_FALSE(store_->done(7).empty());
  EXPECT_EQ(asked.size(), 9u) << "nor do the others read launches, only more columns";
  EXPECT_FALSE(store_->levels(7, /*launches=*/true).empty());
  sqlite3_trace_v2(db, 0, nullptr, nullptr);
  EXPECT_EQ(asked.size(), 11u);
  for (const std::string& sql : asked)
    expect_one_run(
        "the store", sql,
        {"process_run", "run_case", "verified_output", "verified_seed", "metric_value", "launch",
         "stall", "sqlite_autoindex_result_1", "sqlite_autoindex_metric_name_1"});
}

TEST_F(StorePlanTest, TheProfilesOfOneCaseReadNoOthers) {
  const CaseFilter one = [](const std::string& key) { return key.find("softmax") < key.size(); };
  std::map<std::string, int> asked;
  const auto note = [](unsigned, void* counts, void* statement, void*) {
    const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    if (sql.starts_with("SELECT")) ++(*static_cast<std::map<std::string, int>*>(counts))[sql];
    return 0;
  };
  sqlite3_trace_v2(store_->database().handle(), SQLITE_TRACE_STMT, note, &asked);
  EXPECT_EQ(read_row_profiles(*store_, 7, one).size(), 4u);
  sqlite3_trace_v2(store_->database().handle(), 0, nullptr, nullptr);
  int launches = 0, metrics = 0;
  for (const auto& [sql, times] : asked) {
    const bool of_result = sql.find("t WHERE result_id") != std::string::npos;
    if (of_result && sql.find("FROM kernel") != std::string::npos) launches += times;
    if (of_result && sql.find("FROM metric") != std::string::npos) metrics += times;
    if (of_result || sql.find("FROM result r") != std::string::npos)
      expect_one_run("profiles", sql, {"sqlite_autoindex_result_1", "launch", "metric_value"});
  }
  EXPECT_EQ(launches, 4 * 3) << "of each process of four variants";
  EXPECT_EQ(metrics, 3) << "of the middle process of each that was timed";
}

TEST_F(StorePlanTest, AWalkAlongTheResultsOfAProcessSortsNothing) {
  std::string walk;
  const auto note = [](unsigned, void* found, void* statement, void*) {
    const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    if (sql.find("FROM result r WHERE process_id") != std::string::npos)
      *static_cast<std::string*>(found) = sql;
    return 0;
  };
  sqlite3_trace_v2(store_->database().handle(), SQLITE_TRACE_STMT, note, &walk);
  store_->each_level(7)([](const Level&) {});
  sqlite3_trace_v2(store_->database().handle(), 0, nullptr, nullptr);
  ASSERT_FALSE(walk.empty());
  Statement code(store_->database(), "EXPLAIN " + walk);
  while (code.step()) EXPECT_NE(code.text(1), "SorterOpen") << walk;
}

TEST_F(StorePlanTest, AVerdictIsStoredInOnePlace) {
  Statement index(store_->database(),
                  "SELECT name FROM sqlite_schema WHERE tbl_name = 'verdict' AND type = 'index'");
  EXPECT_FALSE(index.step()) << "each of a night's 30,000 would go into a page of its own of "
                             << index.text(0);
}

TEST_F(StorePlanTest, TheReportsOfOneRun) {
  add_sql_functions(store_->database());
  for (const char* name : {"latency", "accuracy", "kernels", "layer", "roofline", "speedup",
                           "summary", "dense-crossover", "pr-aphrodite-1603",
                           "pr-onnxruntime-29167", "pr-sglang-10567", "pr-tensorrt-llm-12686"}) {
    expect_one_run(name, read_file(find_report(name)));
  }
}

/// Adds a result to a run when the reader's second statement begins.
struct Intruder {
  Store store;
  int statements;

  static int look(unsigned, void* self, void* statement, void*) {
    auto* intruder = static_cast<Intruder*>(self);
    const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    if (!sql.starts_with("SELECT") || ++intruder->statements != 2) return 0;
    Result result;
    result.variant = "late";
    result.status = Status::wrong;
    result.accuracy.resize(1);
    try {
      intruder->store.add_result(1, {"s", "gpt", "topk_sort", {}, {}}, {}, {}, result);
    } catch (const Error&) {
      // Where the library has no write-ahead log for us, the reader's lock refuses the writer.
    }
    return 0;
  }
};

TEST_F(StorePlanTest, LevelsAreOfOneStateWhileAnotherProcessWrites) {
  const size_t before = store_->levels(1).size();
  Intruder intruder{Store::open(db_, Store::Mode::update), 0};
  sqlite3_busy_timeout(intruder.store.database().handle(), 0);
  sqlite3_trace_v2(store_->database().handle(), SQLITE_TRACE_STMT, Intruder::look, &intruder);
  EXPECT_EQ(store_->levels(1).size(), before);
  EXPECT_EQ(intruder.statements, 11 + static_cast<int>(before))
      << "three of them walk along a process each, both cases have what was verified, and each "
         "result its metrics";
}

}  // namespace
}  // namespace moegate::test
