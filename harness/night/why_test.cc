// SPDX-License-Identifier: Apache-2.0
#include "harness/night/why.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/night/ab_fixture.h"
#include "harness/night/night_fixture.h"
#include "harness/report/gate_report.h"
#include "harness/store/row_profiles.h"

namespace moegate::test {
namespace {

/// Two programs, of which the head's fused is slower by 10 % because it reads half as much again.
class WhyTest : public AbTest {
 protected:
  WhyTest() {
    for (FakeProgram* program : {&base(), &head()}) {
      for (const char* variant : {"plain", "fused"}) program->counters[variant] = counters(16e6);
    }
    head().spans["fused"] = 1100;
    head().counters["fused"] = counters(24e6);
  }

  static std::vector<Metric> counters(double bytes) {
    return {{"dram__bytes_read.sum", "bytes", bytes}, {"sm__inst_executed.sum", "inst", 1e6}};
  }
  FakeProgram& head() { return fake_.program(""); }
  FakeProgram& base() { return fake_.program(base_path_); }

  /// An A/B as `moegate ab` does it.
  GateReport compare(WhyMode mode, const Deadline& deadline = {}) {
    Store kept = store();
    const auto limits = [](Backend) { return Limits::cuda(); };
    PreparedAb prepared = prepare_ab(ab_, fake_);
    Compared compared = keep_for_why(prepared);
    const Comparison result = run_ab(kept, std::move(prepared), limits);
    GateReport report = report_of(kept, options_.db, result, limits);
    complete_for_why(compared, result);
    fake_.journal.clear();
    add_causes(kept, {compared}, mode, compared.head.plan.hello.device.backend, deadline,
               report.result, fake_);
    return report;
  }
  static std::string cause(const GateReport& report, int rows, const std::string& variant) {
    for (const CaseVerdict& v : report.result.cases) {
      if (v.id.key != fmt::format("fake/rows={}", rows) || v.id.variant != variant) continue;
      return v.cause ? v.cause->sentence : "none";
    }
    return "no such row";
  }

  const std::string kPlanted = "DRAM bytes read +50 % (16 -> 24 MB)";
};

TEST_F(WhyTest, APlantedCauseEndsInTheRowsOfTheVerdict) {
  const GateReport report = compare(WhyMode::automatic);
  EXPECT_EQ(cause(report, 1, "fused"), kPlanted);
  EXPECT_EQ(cause(report, 2, "fused"), kPlanted);
  EXPECT_EQ(cause(report, 1, "plain"), "none") << "it did not change";
  EXPECT_TRUE(report.result.notes.empty());
  std::vector<std::string> sorted = fake_.journal;  // rows of a side are in random order
  const std::string b = base_path_ + ": ";
  std::ranges::sort(sorted.begin() + 1, sorted.begin() + 3);
  std::ranges::sort(sorted.begin() + 4, sorted.end());
  const std::vector<std::string> expected = {
      b + "start", b + "count fake/rows=1 fused", b + "count fake/rows=2 fused",
      "start",     "count fake/rows=1 fused",     "count fake/rows=2 fused"};
  EXPECT_EQ(sorted, expected) << "a process of each side, the base's first";

  const auto json = nlohmann::json::parse(verdict_json(report));
  int causes = 0;
  for (const auto& row : json["cases"]) causes += row.contains("cause");
  EXPECT_EQ(causes, 2);
}

TEST_F(WhyTest, WhatWasCountedIsStoredForTheRunsAndIsNoResult) {
  const GateReport report = compare(WhyMode::automatic);
  Store kept = store();
  const int64_t last = kept.database().integer("SELECT max(run_id) FROM run");
  const RunInfo run = kept.run_info(last);
  EXPECT_EQ(run.task, "counters");
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.tags.at(kWhyTag), std::to_string(report.run.id));
  EXPECT_TRUE(run.tags.contains("ab")) << "it is neither history nor to be resumed";
  EXPECT_EQ(read_row_profiles(kept, report.run.id)
                .at({"fake/rows=1", "fused"})
                .counted->metrics.at(0)
                .value,
            24e6);
  EXPECT_EQ(kept.database().integer("SELECT sum(impossible) FROM result"), 0);
}

TEST_F(WhyTest, AnImprovementIsExplainedToo) {
  std::swap(head().spans, base().spans);
  std::swap(head().counters, base().counters);
  EXPECT_EQ(cause(compare(WhyMode::automatic), 1, "fused"), "DRAM bytes read -33 % (24 -> 16 MB)");
}

TEST_F(WhyTest, OffAsksNothingAndAllAsksEveryRow) {
  EXPECT_EQ(cause(compare(WhyMode::off), 1, "fused"), "none");
  EXPECT_TRUE(fake_.journal.empty());
  const GateReport all = compare(WhyMode::all);
  EXPECT_EQ(cause(all, 1, "fused"), kPlanted);
  EXPECT_EQ(cause(all, 2, "plain"), "nothing differs: 2 counters within 0.0 %");
}

TEST_F(WhyTest, TheVerdictStandsWhereNothingCanBeCounted) {
  base().cannot_count = "counters need rights";
  head().touch = [](const Request&, Result& result) {
    result.kernels = {{.name = "gather", .local_bytes = 24}};
  };
  base().touch = [](const Request&, Result& result) {
    result.kernels = {{.name = "gather", .local_bytes = 0}};
  };
  const GateReport report = compare(WhyMode::automatic);
  EXPECT_EQ(report.result.counts.at(Outcome::regressed), 2);
  ASSERT_EQ(report.result.notes.size(), 1u);
  EXPECT_EQ(report.result.notes[0], "Some causes are unknown: counters need rights.");
  EXPECT_EQ(cause(report, 1, "fused"),
            "local memory 0 -> 24 B/thread (spills, indexed arrays or calls)")
      << "what the timer saw says it";
  base().touch = head().touch = {};
  EXPECT_EQ(cause(compare(WhyMode::automatic), 1, "fused"), "none") << "the note says it once";
  EXPECT_EQ(cause(compare(WhyMode::all), 1, "fused"), "unknown: of both sides no counters");
}

TEST_F(WhyTest, WithoutTimeItSaysSo) {
  double now = 0;
  const Deadline none(5, [&] { return now; });
  GateReport report = compare(WhyMode::automatic, none);
  EXPECT_TRUE(fake_.journal.empty());
  ASSERT_EQ(report.result.notes.size(), 1u);
  EXPECT_EQ(report.result.notes[0], "Some causes are unknown: there was no time left.");
  report = compare(WhyMode::automatic, Deadline(18, [&] { return now; }));
  EXPECT_EQ(report.result.notes.at(0), "Some causes are unknown: there was time for 1 of 2 rows.");
}

TEST_F(WhyTest, TenRowsAtMostTheWorstFirst) {
  write_suite("op = fake\n[a]\nrows = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n");
  head().touch = [](const Request& request, Result& result) {
    const double rows = std::stod(request.spec.params.at("rows"));
    if (request.variant == "fused") result.span_ns *= 1 + 0.01 * rows;
  };
  const GateReport report = compare(WhyMode::automatic);
  EXPECT_EQ(report.result.counts.at(Outcome::regressed), 12);
  EXPECT_EQ(cause(report, 12, "fused"), kPlanted);
  EXPECT_EQ(cause(report, 3, "fused"), kPlanted);
  EXPECT_EQ(cause(report, 2, "fused"), "none");
}

TEST_F(WhyTest, AHostIsNotAskedUnlessEveryRowIs) {
  for (const std::string& path : {base_path_, std::string()}) {
    Hello& hello = fake_.program(path).hello;
    hello.device.backend = Backend::host;
    hello.operators[0].yardstick = "plain";
    for (VariantDescription& v : hello.variants) v.backend = Backend::host;
  }
  head().spans["fused"] = 1500;
  EXPECT_EQ(cause(compare(WhyMode::automatic), 1, "fused"), "none");
  const GateReport report = compare(WhyMode::all);
  EXPECT_TRUE(fake_.journal.empty()) << "a host has nothing to count";
  EXPECT_EQ(cause(report, 1, "fused"), "unknown: of both sides a host's counters are not read");
}

TEST_F(WhyTest, APairOfVariantsIsCountedByItsOwnNames) {
  ab_.base.program.clear();
  ab_.base.variant = "plain";
  ab_.head.variant = "fused";
  ab_.trust_code = false;
  EXPECT_EQ(cause(compare(WhyMode::automatic), 1, "plain → fused"), kPlanted);
}

TEST(Why, ModesHaveNames) {
  EXPECT_EQ(parse_why("auto"), WhyMode::automatic);
  EXPECT_EQ(parse_why("off"), WhyMode::off);
  EXPECT_EQ(parse_why("all"), WhyMode::all);
  EXPECT_THROW(parse_why("yes"), Error);
}

TEST_F(NightTest, AReplayedRegressionSaysWhy) {
  bless_now();
  const auto counters = [](double bytes) {
    return std::vector<Metric>{{"dram__bytes_read.sum", "bytes", bytes}};
  };
  const std::string before = program_file("before");
  for (const char* variant : {"plain", "fused"}) {
    program(before).counters[variant] = counters(16e6);
    program("").counters[variant] = counters(24e6);
  }
  program("").spans["fused"] = 1200;
  const Verdict verdict = gate_now([&](const BaselineHeader&) { return before; });
  int caused = 0;
  for (const CaseVerdict& v : verdict.result.cases) {
    if (v.outcome != Outcome::regressed) continue;
    ++caused;
    ASSERT_TRUE(v.cause) << v.id.key;
    EXPECT_EQ(v.cause->sentence, "DRAM bytes read +50 % (16 -> 24 MB)");
  }
  EXPECT_EQ(caused, 3);
}

TEST_F(NightTest, RowsThatWereNotReplayedHaveNobodyToAsk) {
  bless_now();
  program("").spans["fused"] = 2000;
  const Verdict verdict = gate_now([](const BaselineHeader&) { return std::string(); });
  EXPECT_EQ(verdict.result.counts.at(Outcome::regressed), 3);
  EXPECT_EQ(
      std::ranges::count(verdict.result.notes,
                         "Nobody counted why 3 rows differ: stored numbers judged them, without a "
                         "replay."),
      1);
}

}  // namespace
}  // namespace moegate::test
