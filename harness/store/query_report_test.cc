// SPDX-License-Identifier: Apache-2.0
// The runner of reports, and every report of reports/ on a small synthetic store.
#include "harness/store/query_report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/commands/commands.h"
#include "harness/kernel/kernel.h"
#include "harness/kernel/tile_file.h"
#include "harness/store/report_fixture.h"
#include "harness/store/row_profiles.h"
#include "harness/store/sqlite.h"

namespace moegate::test {
namespace {

TEST_F(ReportTest, EveryReportRunsOnEveryDevice) {
  add_run(Backend::cuda);
  add_run(Backend::host);
  add_qmoe_run(Backend::cuda, {{"single_fp16_acc", {10}, 8}});
  add_qmoe_run(Backend::host, {{"single", {10}, 8}});
  const std::vector<Gemm> layer = {{"moe_gate_up", "gather", "64", {10}},
                                   {"moe_down", "gather", "64", {10}},
                                   {"moe_sum", "sum_per_token", "", {1}},
                                   {"fused_moe", "chain", "64", {10}},
                                   {"dense_fc2", "alpha_per_k_tile", "", {10}}};
  add_moe_run(Backend::cuda, layer);
  add_moe_run(Backend::host, layer);
  add_dense_run(Backend::cuda, {{"alpha_per_k_tile", 10}});
  add_dense_run(Backend::host, {{"alpha_per_k_tile", 10}});
  add_energy_run();
  add_counter_run();
  int reports = 0;
  for (const auto& entry : fs::directory_iterator(kSource / "reports")) {
    if (entry.path().extension() != ".sql") continue;
    ++reports;
    std::ifstream in(entry.path());
    std::string first;
    std::getline(in, first);
    EXPECT_EQ(first.rfind("-- title: ", 0), 0u) << entry.path();
    for (const int64_t run : {1, 2}) {
      // A pull request's own report is of its operators alone.
      const size_t routing = report(entry.path().string(), run).rows.size();
      const size_t int4 = report(entry.path().string(), run + 2).rows.size();
      const size_t fp8 = report(entry.path().string(), run + 4).rows.size();
      const size_t dense = report(entry.path().string(), run + 6).rows.size();
      const size_t energy = report(entry.path().string(), 9).rows.size();
      const size_t counters = report(entry.path().string(), 10).rows.size();
      // A claim has a model of its own, and is of a GPU (qmoe_report_test.cc). Choices are checked
      // by `tune` alone (e2e/choice_test.cc), environments are told by workers
      // (e2e/environment_test.cc), Python compiles (e2e/python_test.cc), and invariance is asked
      // where a run says so (below).
      const std::set<std::string> elsewhere = {"claims",  "regret",      "cliffs",
                                               "compile", "environment", "invariance"};
      if (elsewhere.contains(entry.path().stem())) continue;
      EXPECT_GT(routing + int4 + fp8 + dense + energy + counters, 0u) << entry.path();
    }
  }
  EXPECT_GE(reports, 12);
}

TEST_F(ReportTest, ReportsAreNarrowedToAnOperator) {
  add_run(Backend::cuda);
  Store store = Store::open(db_, Store::Mode::read);
  for (const char* name : {"speedup", "roofline", "accuracy"}) {
    const auto sql = find_report(name);
    EXPECT_EQ(run_report(store, sql, {.run = 1, .op = "topk_sort"}).rows.size(),
              run_report(store, sql, {.run = 1}).rows.size())
        << name;
    EXPECT_EQ(run_report(store, sql, {.run = 1, .op = "other"}).rows.size(), 0u) << name;
  }
}

TEST_F(ReportTest, LatencyHasIntervalsBandwidthAndFailures) {
  add_run(Backend::cuda);
  const Table t = report("latency");
  ASSERT_EQ(t.rows.size(), 8u);
  // Ordered by key: scoring=noaux_tc first; variants by name.
  EXPECT_EQ(at(t, 0, "variant"), "broken");
  EXPECT_EQ(at(t, 0, "us"), "");
  EXPECT_EQ(at(t, 0, "status"), "crashed");
  EXPECT_EQ(at(t, 0, "why"), "signal 11");
  EXPECT_EQ(at(t, 1, "variant"), "chain3");
  // Logs of 10, 10.1, 10.2 us: geometric mean 10.0997, sd .0099, t(.975, 2) = 4.3027.
  EXPECT_EQ(at(t, 1, "us"), "10.1");
  EXPECT_NEAR(std::stod(at(t, 1, "from")), 10.0997 * std::exp(-4.3027 * 0.0099013 / std::sqrt(3.0)),
              0.002);
  EXPECT_NEAR(std::stod(at(t, 1, "to")), 10.0997 * std::exp(4.3027 * 0.0099013 / std::sqrt(3.0)),
              0.002);
  EXPECT_EQ(at(t, 1, "processes"), "3");
  EXPECT_EQ(at(t, 1, "samples"), "300");
  EXPECT_EQ(at(t, 1, "launches"), "1");
  EXPECT_EQ(at(t, 1, "GB/s"), "1584.2");
}

TEST_F(ReportTest, InvarianceHasItsPrice) {
  add_dense_run(Backend::cuda, {{"quick", 10}, {"steady", 12}, {"slow", 20}});
  EXPECT_EQ(report("invariance").rows.size(), 0u) << "nobody asked";
  Store::open(db_, Store::Mode::write)
      .database()
      .execute(
          "INSERT INTO metric SELECT result_id, -1, 'invariance_broken_at', 'tokens', "
          "iif(variant = 'quick', 7, 0) FROM result JOIN process USING (process_id) "
          "WHERE round = 0");
  const Table t = report("invariance");
  EXPECT_EQ(column(t, "Batch-invariant"),
            (Cells{{"quick", "no"}, {"steady", "yes"}, {"slow", "yes"}}));
  EXPECT_EQ(column(t, "Differs at"), (Cells{{"quick", "7"}, {"steady", ""}, {"slow", ""}}));
  EXPECT_EQ(column(t, "Price"), (Cells{{"quick", ""}, {"steady", "1.20x"}, {"slow", ""}}));
}

TEST_F(ReportTest, StatusesOfSeveralProcessesStandWorstFirst) {
  const std::map<std::string, std::vector<Status>> variants = {
      {"late", {Status::ok, Status::noisy, Status::ok}},
      {"early", {Status::noisy, Status::ok, Status::ok}},
      {"failed", {Status::noisy, Status::ok, Status::wrong}},
      {"same", {Status::noisy, Status::noisy, Status::noisy}}};
  add_statuses(variants);
  const Cells statuses = {
      {"late", "noisy,ok"}, {"early", "noisy,ok"}, {"failed", "wrong,noisy,ok"}, {"same", "noisy"}};
  for (const char* name : {"latency", "summary"}) {
    const Table t = report(name);
    EXPECT_EQ(column(t, "status"), statuses) << name;
    const auto status = std::ranges::find(t.columns, "status") - t.columns.begin();
    for (const auto& row : t.rows) {
      const Table::Cell& cell = row.at(static_cast<size_t>(status));
      EXPECT_EQ(cell.tone, cell.text == "wrong,noisy,ok" ? Tone::bad : Tone::doubtful) << cell.text;
    }
  }
  Store store = Store::open(db_, Store::Mode::read);
  ask_about(store, {{1, 1, "late"}});
  RowReport siblings(store, kSource / "reports/pages/case-siblings.sql");
  EXPECT_EQ(column(siblings.of(0), "status"), statuses) << "on the page of a case";
}

TEST_F(ReportTest, SpeedupIsPairedAndSaysWhenItIsNotOne) {
  add_run(Backend::cuda);
  add_run(Backend::host);
  for (const int64_t run : {1, 2}) {
    const Table t = report("speedup", run);
    ASSERT_EQ(t.rows.size(), 4u);
    EXPECT_EQ(at(t, 0, "variant"), "flat");
    EXPECT_EQ(at(t, 0, "Speedup"), "~");
    EXPECT_EQ(at(t, 1, "variant"), "fused");
    EXPECT_EQ(at(t, 1, "Speedup"), "1.25x") << "the common noise cancels";
    EXPECT_EQ(at(t, 1, "95 % CI"), "1.25–1.25");
    EXPECT_EQ(at(t, 1, "Before (us)"), "10.1");
    EXPECT_EQ(at(t, 1, "After (us)"), "8.08");
    EXPECT_EQ(at(t, 1, "tokens"), "8");
    EXPECT_EQ(at(t, 1, "other"), "scoring=noaux_tc") << "only what varies";
  }
}

TEST_F(ReportTest, SummaryAgreesWithLatencyAndSpeedup) {
  add_run(Backend::cuda);
  const Table t = report("summary"), speedup = report("speedup"), latency = report("latency");
  ASSERT_EQ(t.rows.size(), latency.rows.size()) << "what failed has a row, too";
  size_t compared = 0;
  for (size_t row = 0; row < t.rows.size(); ++row) {
    EXPECT_EQ(at(t, row, "row"), at(latency, row, "row"));
    EXPECT_EQ(at(t, row, "us").empty(), at(latency, row, "us").empty());
    EXPECT_EQ(at(t, row, "status"), at(latency, row, "status"));
    EXPECT_EQ(at(t, row, "why"), at(latency, row, "why"));
    if (at(t, row, "before").empty()) {
      EXPECT_EQ(at(t, row, "Speedup"), "") << "of no before";
      continue;
    }
    EXPECT_EQ(at(t, row, "variant"), at(speedup, compared, "variant"));
    EXPECT_EQ(at(t, row, "Speedup"), at(speedup, compared++, "Speedup"));
  }
  EXPECT_EQ(compared, speedup.rows.size());
  EXPECT_EQ(at(t, 1, "95 % CI"), "9.85–10.35");
}

TEST_F(ReportTest, AnOperatorOfSomebodyElseHasItsSpeedupToo) {
  Store store = Store::open(db_, Store::Mode::write);
  RunInfo run = info(Backend::cuda);
  run.operators.push_back({"mine", "", {{"slow_and_old", "new_?"}, {"old"}}});
  const int64_t process = store.begin_process(store.begin_run(run), 0, 1);
  const Case c{"s", "gpt", "mine", {{"tokens", "8"}}, {}};
  const std::pair<const char*, double> rows[] = {
      {"slow_and_old", 20000}, {"old", 10000}, {"new_a", 5000}, {"other", 8000}};
  for (const auto& [variant, ns] : rows) add(store, process, c, variant, {ns}, 1);
  EXPECT_EQ(column(report("speedup"), "before"),
            (Cells{{"new_a", "slow_and_old"}, {"other", "old"}}))
      << "a before is no after";
}

TEST_F(ReportTest, OneProcessHasNoSpeedup) {
  add_run(Backend::cuda, 1);
  EXPECT_EQ(at(report("speedup"), 1, "Speedup"), "~");
  EXPECT_EQ(at(report("speedup"), 1, "95 % CI"), "");
  EXPECT_EQ(at(report("latency"), 1, "from"), "10") << "the interval of that process";
}

TEST_F(ReportTest, EveryVariantIsABeforeOrHasOne) {
  std::map<std::pair<std::string, Backend>, std::vector<Gemm>> all;
  for (const Variant& v : all_variants()) {
    if (!v.file.starts_with("kernels/") || is_tile_variant(v.name)) continue;  // tests', candidates
    all[{v.op, v.backend}].push_back({v.op, v.name, "16", {10}});
  }
  int64_t run = 0;
  std::set<std::string> befores, missing;  // a before of one operator may have no after in another
  for (const auto& [of, variants] : all) {
    add_moe_run(of.second, variants);
    const Table t = report("speedup", ++run);
    std::set<std::string> named;
    for (size_t row = 0; row < t.rows.size(); ++row) {
      befores.insert(at(t, row, "before"));
      named.insert({at(t, row, "before"), at(t, row, "variant")});
    }
    for (const Gemm& v : variants) {
      if (!named.contains(v.variant)) missing.insert(v.variant);
    }
  }
  for (const std::string& variant : missing) EXPECT_TRUE(befores.contains(variant)) << variant;
}

TEST_F(ReportTest, RooflineNeedsMeasuredCeilings) {
  add_run(Backend::cuda);
  EXPECT_EQ(at(report("roofline"), 0, "% of roofline"), "");
  EXPECT_NE(at(report("roofline"), 0, "GB/s"), "");
  measure_ceilings({{"read_bytes_per_s", 4e12}});
  const Table t = report("roofline");
  EXPECT_EQ(at(t, 0, "variant"), "chain3");
  EXPECT_EQ(at(t, 0, "floor us"), "4") << "16 MB at 4 TB/s";
  EXPECT_EQ(at(t, 0, "% of bandwidth"), "39.6");
  EXPECT_EQ(at(t, 0, "% of roofline"), "39.6");
  EXPECT_EQ(at(t, 0, "% of rate"), "");
}

TEST_F(ReportTest, EnergyIsWithItsUncertainty) {
  add_energy_run();
  const Table t = report("energy");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(at(t, 0, "variant"), "chain3");
  EXPECT_EQ(at(t, 0, "mJ"), "2.4");
  EXPECT_EQ(at(t, 0, "± mJ"), "0.05");
  EXPECT_EQ(at(t, 0, "W"), "480");
  EXPECT_EQ(at(t, 0, "TFLOP/J"), "2.5") << "6 GFLOP in 2.4 mJ";
  EXPECT_EQ(at(t, 0, "GB/J"), "10") << "24 MB in 2.4 mJ";
  EXPECT_EQ(at(t, 0, "mJ with flush"), "12");
  EXPECT_EQ(at(t, 1, "mJ"), "0.01");
  EXPECT_EQ(at(t, 1, "W"), "") << "less than is uncertain";
  EXPECT_EQ(at(t, 1, "GB/J"), "");
}

TEST_F(ReportTest, ResourcesAreBlocksPerSmAndWaves) {
  add_run(Backend::cuda);
  Database(db_, SQLITE_OPEN_READWRITE)
      .execute(
          "UPDATE device SET class = 'nvidia-h200'; "
          "INSERT INTO launch_shape SELECT 99, name, '132x3x1', '256x1x1', '', 128, 512, 1024, 24 "
          "FROM launch_shape;"
          "UPDATE launch SET shape_id = 99 "
          "WHERE result_id IN (SELECT result_id FROM result WHERE variant = 'fused')");
  const Table t = report("resources");
  ASSERT_EQ(t.rows.size(), 6u) << "three variants of two cases, each kernel once";
  for (size_t row = 0; row < t.rows.size(); ++row) {
    const bool known = at(t, row, "variant") == "fused";
    EXPECT_EQ(at(t, row, "blocks per SM"), known ? "2" : "") << row;
    EXPECT_EQ(at(t, row, "waves"), known ? "1.5" : "") << row;
    EXPECT_EQ(at(t, row, "local bytes"), known ? "24" : "") << "as an older program: unknown";
  }
  Store store = Store::open(db_, Store::Mode::read);
  const auto launches = launches_of(store, 1);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].name, "kernel<int>");
  EXPECT_EQ(launches[0].block, "256x1x1");
  EXPECT_EQ(launches[0].dynamic_shared, 1024);
}

TEST_F(ReportTest, UnknownNamesListWhatThereIs) {
  for (const char* name : {"latenzy", ""}) {
    const std::string why = refusal_of([&] { find_report(name); });
    EXPECT_NE(why.find("dense-crossover, energy, environment, formats, invariance, kernels"),
              std::string::npos)
        << why;
  }
  EXPECT_THROW(find_report("../reports/none.sql"), Error);
}

TEST_F(ReportTest, TheCommandPrints) {
  add_run(Backend::cuda);
  testing::internal::CaptureStdout();
  EXPECT_EQ(cmd_report({"speedup", "--db", db_, "--format", "csv"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout().rfind("model,tokens,routing", 0), 0u);
  const auto json = [&](const std::string& name) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(cmd_report({name, "--db", db_, "--format", "json"}), 0);
    return nlohmann::json::parse(testing::internal::GetCapturedStdout());
  };
  for (const char* name : {"speedup", "summary"}) {
    int decided = 0;
    for (const auto& row : json(name)) {
      EXPECT_TRUE(row["case"].is_string() && row["variant"].is_string()) << row;
      EXPECT_TRUE(row["speedup"].is_number() || row["speedup"].is_null()) << row;
      EXPECT_EQ(row["low"].is_number(), row["high"].is_number()) << row;
      EXPECT_FALSE(row.contains("Speedup") || row.contains("95 % CI")) << row;
      if (!row["speedup"].is_number()) continue;
      ++decided;
      EXPECT_LE(row["low"], row["speedup"]) << row;
      EXPECT_GE(row["high"], row["speedup"]) << row;
    }
    EXPECT_GT(decided, 0) << name;
  }
  EXPECT_THROW(cmd_report({"speedup", "--db", db_, "--run", "9"}), Error);
  EXPECT_THROW(cmd_report({"speedup", "--db", db_, "--format", "xml"}), Error);
}

// Reports that people write: what they may ask, with which functions, and what they get.

TEST_F(ReportTest, ItsFirstLinesSayWhoGetsAColumn) {
  add_run(Backend::cuda);
  const auto sql = fs::path(db_).replace_extension(".sql");
  const auto write = [&](const std::string& head) {
    std::ofstream(sql) << "-- title: t\n" << head << "SELECT 1 AS a, 2 AS \"b, c\", 3 AS d\n";
  };
  write("-- keep: b, c; a\n-- programs: d\n");
  const Table t = report(sql.string(), 1);
  EXPECT_EQ(t.keep, (std::vector<std::string>{"b, c", "a"}));
  EXPECT_EQ(t.only, (std::map<std::string, Readers>{{"d", Readers::programs}}));
  write("-- people: e\n");
  EXPECT_NE(refusal_of([&] { report(sql.string(), 1); }).find("names 'e', which is no column"),
            std::string::npos);
}

TEST_F(ReportTest, QuantilesAreOfStoredSpans) {
  add_run(Backend::cuda);
  const auto sql = fs::path(db_).replace_extension(".sql");
  std::ofstream(sql) << "SELECT span_quantile(s, 0) AS a, span_quantile(s, 0.5) AS b, "
                        "span_quantile(s, 1) AS c, span_quantile(x'', 0.5) AS d "
                        "FROM (SELECT x'000040400000803f00000040' AS s)";  // 3, 1, 2
  const Table t = report(sql.string(), 1);
  EXPECT_EQ(at(t, 0, "a"), "1");
  EXPECT_EQ(at(t, 0, "b"), "2");
  EXPECT_EQ(at(t, 0, "c"), "3");
  EXPECT_EQ(at(t, 0, "d"), "");
}

TEST_F(ReportTest, OfOneProcessTheIntervalIsAroundTheLevel) {
  {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(Backend::cuda));
    Result r;
    r.variant = "flat";
    r.spans_ns = std::vector<float>(20, 1000);
    std::fill_n(r.spans_ns.begin(), 6,
                2000.0F);  // the level, 1250, is above all of the median's interval
    r.samples = 20;
    r.span_ns = 1250;
    r.median_ns = r.low_ns = r.high_ns = 1000;
    store.add_result(store.begin_process(run, 0, 1),
                     {"s", "gpt", "topk_sort", {{"tokens", "8"}}, {}}, {}, {}, r);
    store.end_run(run, "complete");
  }
  const Table t = report("latency");
  EXPECT_EQ(at(t, 0, "us"), "1.25");
  EXPECT_EQ(at(t, 0, "from"), "0.97");  // Yuen, by hand: 1250 ± 2.131 x 470 / (0.8 x sqrt(20))
  EXPECT_EQ(at(t, 0, "to"), "1.53");
  EXPECT_EQ(at(report("summary"), 0, "95 % CI"), "0.97–1.53");
  Database(db_, SQLITE_OPEN_READWRITE).execute("DELETE FROM sample");  // as prune does
  EXPECT_EQ(at(report("latency"), 0, "to"), "1");
  EXPECT_EQ(at(report("summary"), 0, "95 % CI"), "1.0–1.0");
}

TEST_F(ReportTest, AReportOnlyReads) {
  add_run(Backend::cuda);
  EXPECT_EQ(refusal("SELECT count(*) AS n FROM run WHERE run_id = :run"), "accepted");
  EXPECT_NE(refusal("DELETE FROM run").find("one SELECT"), std::string::npos);
  EXPECT_NE(refusal("ATTACH '" + (dir_ / "made.db").string() + "' AS x").find("one SELECT"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(dir_ / "made.db"));
  EXPECT_NE(refusal("SELECT 1; SELECT 2").find("more than one"), std::string::npos);
  EXPECT_NE(refusal("SELECT x FROM nowhere").find("own.sql"), std::string::npos);
  EXPECT_NE(refusal("").find("own.sql"), std::string::npos);
  EXPECT_NE(refusal("SELECT load_extension('x')"), "accepted");
}

TEST_F(ReportTest, NullIsNoneAndNumbersKeepTheirDigits) {
  add_run(Backend::cuda);
  std::ofstream(dir_ / "own.sql")
      << "SELECT NULL AS a, 12345678901 AS b, 1.0/3 AS c, 'x' AS d, 2.0 AS e, "
         "(SELECT sd(value) FROM json_each('[1,2,null,4]')) AS s, "
         "(SELECT sd(value) FROM json_each('[1]')) AS s1, t975(2) AS t, t975(0) AS t0, "
         "(SELECT reach95(value) FROM json_each('[1,2,4]')) AS r, "
         "(SELECT reach95(value) FROM json_each('[1]')) AS r1, "
         "speedup_text(ln(1.25), 0.1, 2) AS up, speedup_text(ln(1.25), NULL, 2) AS none, "
         "speedup_text(ln(1.25), 0.3, 2) AS same, speedup_text(NULL, 0.1, 2) AS unknown, "
         "interval_text(ln(2), ln(2), 1) AS i, interval_text(ln(2), NULL, 1) AS i0, "
         "speedup_with_interval(ln(4), ln(2), 1) AS u, memory_ns(6, 5, 3, 2e9) AS m, "
         "memory_ns(6, 5, 3, NULL) AS m0, products_ns(8, 2e9) AS p";
  const Table t = report((dir_ / "own.sql").string());
  const char* const expected[] = {
      "", "12345678901",    "0.333333", "x",     "2", "1.52753", "", "4.30265",
      "", "3.79458",        "",         "1.25x", "~", "~",       "", "1.0–4.0",
      "", "4.0x (2.0–8.0)", "4",        "",      "4"};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(t.rows[0][i].text, expected[i]) << t.columns[i];
  EXPECT_TRUE(t.rows[0][0].none);
  EXPECT_TRUE(t.rows[0][1].number);
  EXPECT_FALSE(t.rows[0][3].number);
  EXPECT_FALSE(t.rows[0][3].none);
}

TEST_F(ReportTest, HasBoundsAndBlamesTheRightOne) {
  add_run(Backend::cuda);
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 1000000) ";
  EXPECT_NE(refusal(numbers + "SELECT i FROM n").find("more than 1000000 rows"), std::string::npos);
  EXPECT_EQ(end_of("SELECT length(zeroblob(1000000000)) AS n").first, Exit::usage);
  const std::string twice = refusal("SELECT 1 AS a, 2 AS b, 3 AS a");
  EXPECT_NE(twice.find("two columns 'a'"), std::string::npos) << twice;
  EXPECT_EQ(end_of("SELECT nothing FROM nowhere").first, Exit::usage);
  Database(db_, SQLITE_OPEN_READWRITE).execute("PRAGMA user_version = 3");
  std::ofstream(db_, std::ios::in | std::ios::out | std::ios::binary).seekp(8192)
      << std::string(200000, 'x');
  EXPECT_EQ(end_of("SELECT count(span_ns) AS n FROM result JOIN process USING (process_id)").first,
            Exit::store);
}

// Reports about many rows: each row has its own lines, in whatever order it is asked for.

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
}  // namespace moegate::test
