// SPDX-License-Identifier: Apache-2.0
// The fields of verdict.json, which programs of others read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "harness/report/report_fixture.h"

namespace moegate {
namespace {

using Names = std::set<std::string>;

Names names_in(const nlohmann::json& object) {
  Names names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

/// A report with all that it can have.
nlohmann::json whole_verdict() {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  CaseVerdict& v = report.result.cases[0];
  v.stage = 2;
  v.waiver = "W-1";
  v.creep = 0.01;
  v.by_time = true;
  v.latency->mde = 0.02;
  v.cause = Cause{.sentence = "more bytes", .numbers = {{.name = "dram_bytes"}}};
  report.result.absent_shards.resize(1);
  report.result.suites["nightly"].against = "baselines/nightly.tsv";
  return nlohmann::json::parse(verdict_json(report));
}

TEST(VerdictJson, HasTheFieldsOfItsSchema) {
  const nlohmann::json v = whole_verdict();
  const char* const next =
      "CONTRACTS.md: a field that goes or means another thing raises \"schema\"";
  EXPECT_EQ(v.at("schema"), 1);
  EXPECT_EQ(
      names_in(v),
      (Names{"schema",          "exit",          "sentence", "db",       "run",     "limits",
             "judged",          "not_judged",    "blind",    "not_run",  "counts",  "throttle",
             "median_change",   "unsupported",   "notes",    "left_out", "changed", "waivers",
             "waiver_problems", "absent_shards", "suites",   "cases"}))
      << next;
  EXPECT_EQ(names_in(v.at("run")),
            (Names{"id", "label", "started", "status", "class", "device", "uuid", "driver",
                   "commit", "dirty", "build", "protocol", "timer", "flush", "rounds", "command"}))
      << next;
  EXPECT_EQ(names_in(v.at("limits")), (Names{"margin", "fail_at", "alpha", "blind_at"})) << next;
  EXPECT_EQ(names_in(v.at("counts")),
            (Names{"pass", "identical", "regressed", "improved", "inconclusive", "wrong", "missing",
                   "new", "environment", "waived"}))
      << next;
  EXPECT_EQ(names_in(v.at("absent_shards").at(0)), (Names{"shard", "of", "command"})) << next;
  EXPECT_EQ(names_in(v.at("suites").at(0)), (Names{"suite", "against", "note"})) << next;
  const nlohmann::json& row = v.at("cases").at(0);
  EXPECT_EQ(
      names_in(row),
      (Names{"suite",  "key",   "variant", "outcome",    "against", "why",    "stage",
             "waiver", "creep", "by",      "base",       "head",    "effect", "hodges_lehmann",
             "low",    "high",  "p",       "p_adjusted", "mde",     "blind",  "cause"}))
      << next;
  EXPECT_EQ(names_in(row.at("cause")), (Names{"kind", "sentence", "also", "numbers"})) << next;
  EXPECT_EQ(names_in(row.at("cause").at("numbers").at(0)), (Names{"name", "unit", "base", "head"}))
      << next;
}

}  // namespace
}  // namespace moegate
