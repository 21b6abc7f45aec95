// SPDX-License-Identifier: Apache-2.0
#include "harness/report/gate_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/judge/comparison.h"
#include "harness/report/pr_table.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

using Json = nlohmann::json;

std::string cause_of(const CaseVerdict& v) {
  return v.cause ? v.cause->sentence : "";
}

Json cause_json(const Cause& cause) {
  Json j = {{"kind", name_of(cause.kind)}, {"sentence", cause.sentence}, {"also", cause.also}};
  j["numbers"] = Json::array();
  for (const CauseNumber& n : cause.numbers) {
    j["numbers"].push_back(
        {{"name", n.name}, {"unit", n.unit}, {"base", n.base}, {"head", n.head}});
  }
  return j;
}

Json case_json(const CaseVerdict& v) {
  Json j = {{"suite", v.id.suite},           {"key", v.id.key},      {"variant", v.id.variant},
            {"outcome", name_of(v.outcome)}, {"against", v.against}, {"why", v.why}};
  j["stage"] = v.stage;
  if (!v.waiver.empty()) j["waiver"] = v.waiver;
  if (v.creep > 0) j["creep"] = v.creep;
  if (v.by_time) j["by"] = "time";
  if (v.base > 0) j["base"] = v.base;
  if (v.head > 0) j["head"] = v.head;
  if (v.latency) {
    const Judgement& l = *v.latency;
    j["effect"] = l.effect;
    if (v.stage == 2) j["hodges_lehmann"] = l.robust;
    j["low"] = l.low;
    j["high"] = l.high;
    j["p"] = l.p;
    j["p_adjusted"] = l.p_adjusted;
    if (l.mde > 0) j["mde"] = l.mde;
    j["blind"] = l.blind;
  }
  if (v.cause) j["cause"] = cause_json(*v.cause);
  return j;
}

Json run_json(const RunInfo& run) {
  Json json = {{"id", run.id},
               {"label", run.label},
               {"started", run.started},
               {"status", run.status},
               {"class", run.device.klass},
               {"device", run.device.name},
               {"uuid", run.device.uuid},
               {"driver", run.device.driver},
               {"commit", run.git_sha},
               {"dirty", run.dirty},
               {"build", run.build},
               {"protocol", run.protocol},
               {"timer", run.timer},
               {"flush", run.flush},
               {"rounds", run.rounds},
               {"command", run.command}};
  // Of somebody's repository; the program's own have its commit.
  if (const auto repository = run.tags.find(kRepositoryTag); repository != run.tags.end())
    json["kernels"] = {{"repository", repository->second}, {"commit", measured_commit(run)}};
  return json;
}

// A verdict's rows in the store, beside the run that was judged.

constexpr const char* kSaid =
    "outcome, stage, base, head, effect, low, high, df, p, p_adjusted, mde, blind, family, waiver, "
    "why, cause";

/// Calls `add` with what a row says: a value for each column of kSaid. NaN is stored as NULL.
template <class Add>
void for_each_said(const CaseVerdict& v, int family, const Add& add) {
  const bool judged = v.latency.has_value();
  static const Judgement kNone;
  const Judgement& l = judged ? *v.latency : kNone;
  const auto where = [](bool known, double value) { return known ? value : std::nan(""); };
  add(std::string_view(name_of(v.outcome)));
  add(v.stage);
  add(where(v.base > 0, v.base));
  add(where(v.head > 0, v.head));
  for (const double value : {l.effect, l.low, l.high}) add(where(judged, value));
  add(where(judged && l.df > 0, l.df));
  for (const double value : {l.p, l.p_adjusted}) add(where(judged, value));
  add(where(judged && l.mde > 0, l.mde));
  add(static_cast<int>(l.blind));
  add(family);
  add(std::string_view(v.waiver));
  add(std::string_view(v.why));
  const std::string cause = cause_of(v);
  add(std::string_view(cause));
}

bool holds(const Statement& q, int column, double value) {
  return std::isfinite(value) ? !q.is_null(column) && q.real(column) == value : q.is_null(column);
}
bool holds(const Statement& q, int column, int value) {
  return q.integer(column) == value;
}
bool holds(const Statement& q, int column, std::string_view value) {
  return q.view(column) == value;
}

/// As the table's key has it, behind the run.
using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
Key key_of(const CaseVerdict& v) {
  return {v.against, v.id.suite, v.id.key, v.id.variant};
}

/// A row of a verdict, and whether the store has it as it is.
struct VerdictRow {
  const CaseVerdict* verdict;
  bool stored = false;
};

/// In the order of the table's key, so that they are compared and added in one sweep.
std::vector<VerdictRow> in_order_of_key(const GateResult& result) {
  std::vector<VerdictRow> rows;
  for (const CaseVerdict& v : result.cases) rows.push_back({&v});
  std::ranges::sort(rows, {}, [](const VerdictRow& row) { return key_of(*row.verdict); });
  return rows;
}

/// Marks the rows that the store has as they are. False: it has others against `against`, too.
bool find_stored(Database& db, int64_t run, const std::string& against, int family,
                 std::vector<VerdictRow>& rows) {
  constexpr int kNames = 3;
  Statement q(db, fmt::format("SELECT suite, key, variant, {} FROM verdict WHERE run_id = ?1 AND "
                              "against = ?2 ORDER BY suite, key, variant",
                              kSaid));
  q.bind(run, against);
  bool others = false;
  auto row = rows.begin();
  while (q.step()) {
    const Key key(against, q.view(0), q.view(1), q.view(2));
    while (row != rows.end() && key_of(*row->verdict) < key) ++row;
    if (row == rows.end() || key_of(*row->verdict) != key) {
      others = true;
      continue;
    }
    int column = kNames;
    row->stored = true;
    for_each_said(*row->verdict, family, [&](const auto& value) {
      row->stored = row->stored && holds(q, column, value);
      ++column;
    });
  }
  return !others;
}

void put_verdicts(Database& db, int64_t run, int family, const std::vector<VerdictRow>& rows) {
  Statement insert(
      db, fmt::format("INSERT OR REPLACE INTO verdict (run_id, against, suite, key, variant, {}) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
                      "?16, ?17, ?18, ?19, ?20, ?21)",
                      kSaid));
  for (const auto& [verdict, stored] : rows) {
    if (stored) continue;
    const CaseVerdict& v = *verdict;
    insert.bind(run, v.against, v.id.suite, v.id.key, v.id.variant);
    int place = 5;
    for_each_said(v, family, [&](const auto& value) { insert.bind_at(++place, value); });
    insert.run();
  }
}

/// A run has one verdict of a gate, the newest: those against other files go.
void remove_earlier_gates(Database& db, int64_t run, const std::set<std::string>& judged_against) {
  if (std::ranges::all_of(judged_against, is_of_a_run)) return;
  for (const auto& against :
       values_of<std::string>(db, "SELECT DISTINCT against FROM verdict WHERE run_id = ?1", run)) {
    if (is_of_a_run(against) || judged_against.contains(against)) continue;
    db.run("DELETE FROM verdict WHERE run_id = ?1 AND against = ?2", run, against);
  }
}

}  // namespace

std::string verdict_json(const GateReport& report) {
  const GateResult& result = report.result;
  Json j = {{"schema", 1},
            {"exit", static_cast<int>(report.exit)},
            {"sentence", sentence(result, report.exit)},
            {"db", report.db},
            {"run", run_json(report.run)},
            {"limits",
             {{"margin", report.limits.margin},
              {"fail_at", report.limits.fail_at},
              {"alpha", report.limits.alpha},
              {"blind_at", report.limits.blind_at}}},
            {"judged", result.judged},
            {"not_judged", result.not_judged},
            {"blind", result.blind},
            {"not_run", result.not_run},
            {"unsupported", result.unsupported},
            {"median_change", result.median_change},
            {"throttle", report.throttle},
            {"notes", result.notes},
            {"left_out", result.left_out},
            {"changed", result.changed},
            {"waivers", result.waiver_notes},
            {"waiver_problems", result.waiver_problems}};
  for (size_t o = 0; o < kNames<Outcome>.size(); ++o) {
    j["counts"][kNames<Outcome>[o]] = result.count(static_cast<Outcome>(o));
  }
  for (const EnvironmentChange& change : result.environment) {
    j["environment"]["changed"].push_back({{"kind", change.kind},
                                           {"name", change.name},
                                           {"base", change.base},
                                           {"head", change.head}});
  }
  j["absent_shards"] = Json::array();
  for (const AbsentShard& absent : result.absent_shards) {
    j["absent_shards"].push_back(
        {{"shard", absent.shard}, {"of", absent.shards}, {"command", absent.command}});
  }
  j["suites"] = Json::array();
  for (const auto& [suite, e] : result.suites) {
    j["suites"].push_back({{"suite", suite}, {"against", e.against}, {"note", e.note}});
  }
  j["cases"] = Json::array();
  for (const CaseVerdict& v : result.cases) j["cases"].push_back(case_json(v));
  // A profiler's kernel name or a crashed child's message may hold bytes that are not UTF-8.
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Table verdict_table(const GateResult& result) {
  Table table{{"outcome", "suite", "case", "variant", "base", "head", "effect", "low", "high", "p",
               "p_adjusted", "mde", "against", "why", "stage", "waiver", "cause"}};
  const auto number = [](bool known, double x) {
    return known ? Table::number("{:.5g}", x) : Table::Cell{"", true};
  };
  for (const CaseVerdict& v : result.cases) {
    const Judgement l = v.latency.value_or(Judgement{});
    const auto latency = [&](double x) { return number(v.latency.has_value(), x); };
    table.add(name_of(v.outcome), v.id.suite, v.id.key, v.id.variant, number(v.base > 0, v.base),
              number(v.head > 0, v.head), latency(l.effect), latency(l.low), latency(l.high),
              latency(l.p), latency(l.p_adjusted), latency(l.mde), v.against, v.why, v.stage,
              v.waiver, cause_of(v));
  }
  return table;
}

std::string throttle_summary(Store& store, int64_t run) {
  const auto text = values_of<std::string>(
      store.database(),
      "SELECT group_concat(throttle || ' in ' || throttled || ' of ' || (SELECT count(*) FROM "
      "process WHERE run_id = ?1) || ' processes', ', ') FROM (SELECT throttle, count(*) AS "
      "throttled FROM process WHERE run_id = ?1 AND throttle <> '' GROUP BY throttle "
      "ORDER BY throttled DESC, throttle)",
      run);
  return text.front();
}

void store_verdicts(Store& store, int64_t run, const GateResult& result) {
  Database& db = store.database();
  Transaction transaction(db);
  std::vector<VerdictRow> rows = in_order_of_key(result);
  std::set<std::string> judged_against;
  for (const auto& [suite, e] : result.suites) judged_against.insert(e.against);
  bool only_ours = true;
  for (const std::string& against : judged_against) {
    only_ours = find_stored(db, run, against, result.judged, rows) && only_ours;
  }
  if (!only_ours) {
    for (const std::string& against : judged_against)
      db.run("DELETE FROM verdict WHERE run_id = ?1 AND against = ?2", run, against);
    for (VerdictRow& row : rows) row.stored = false;
  }
  remove_earlier_gates(db, run, judged_against);
  put_verdicts(db, run, result.judged, rows);
  transaction.commit();
}

GateReport report_of(Store& store, const std::string& db, const Comparison& comparison,
                     const std::function<Limits(Backend)>& limits) {
  GateReport report;
  const RunInfo base = store.run_info(comparison.base_run);
  report.run = store.run_info(comparison.head_run);
  report.db = db;
  const Backend backend = report.run.device.backend;
  report.limits = limits(backend);
  std::map<std::string, Expectation> expected;
  for (const Sides* sides : {&comparison.base, &comparison.head}) {
    for (const auto& [id, side] : *sides) {
      expected[id.suite] = {against_commit(base), "", false, {}};
    }
  }
  for (const CaseId& id : comparison.decided.left_out) {
    expected[id.suite].against = against_commit(base);  // of which nothing may be measured
  }
  for (const auto& [id, side] : comparison.base) expected[id.suite].sides[id] = side;
  Setting setting{report.limits, backend == Backend::host};
  setting.trust_code = comparison.trust_code;
  setting.paired = true;
  report.result = judge(comparison.head, expected, setting, comparison.decided);
  std::ranges::copy(comparison.changed, std::back_inserter(report.result.changed));
  add_lacking(report.result, comparison.lacking);
  report.result.environment = changes_between(store.environment(comparison.base_run),
                                              store.environment(comparison.head_run));
  if (comparison.only_environments) name_environment(report.result);
  PrTables tables =
      read_pr_tables(store, comparison.base_run, comparison.head_run, comparison.pair);
  tables.result = report.result;
  tables.limits = report.limits;
  report.ab = pr_sections(tables);
  report.throttle = throttle_summary(store, comparison.head_run);
  return report;
}

}  // namespace moegate
