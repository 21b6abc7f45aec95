// SPDX-License-Identifier: Apache-2.0
#include "harness/report/gate_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/store/rows.h"

namespace moegate {
namespace {

using Json = nlohmann::json;

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
  return {{"id", run.id},
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
  for (int o = 0; o < kOutcomes; ++o) {
    const auto outcome = static_cast<Outcome>(o);
    const auto it = result.counts.find(outcome);
    j["counts"][name_of(outcome)] = it == result.counts.end() ? 0 : it->second;
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

std::string cause_of(const CaseVerdict& v) {
  return v.cause ? v.cause->sentence : "";
}

Table verdict_table(const GateResult& result) {
  Table table;
  table.columns = {"outcome", "suite", "case",  "variant", "base",       "head",
                   "effect",  "low",   "high",  "p",       "p_adjusted", "mde",
                   "against", "why",   "stage", "waiver",  "cause"};
  const auto number = [](double x) { return Table::Cell{fmt::format("{:.5g}", x), true}; };
  const auto level = [&](double x) { return x > 0 ? number(x) : Table::Cell{"", true}; };
  for (const CaseVerdict& v : result.cases) {
    const Judgement l = v.latency.value_or(Judgement{});
    const auto latency = [&](double x) { return v.latency ? number(x) : Table::Cell{"", true}; };
    table.rows.push_back({{name_of(v.outcome)},
                          {v.id.suite},
                          {v.id.key},
                          {v.id.variant},
                          level(v.base),
                          level(v.head),
                          latency(l.effect),
                          latency(l.low),
                          latency(l.high),
                          latency(l.p),
                          latency(l.p_adjusted),
                          latency(l.mde),
                          {v.against},
                          {v.why},
                          {std::to_string(v.stage), true},
                          {v.waiver},
                          {cause_of(v)}});
  }
  return table;
}

std::string throttle_summary(Store& store, int64_t run) {
  Statement q(
      store.database(),
      "SELECT throttle, count(*) AS throttled, (SELECT count(*) FROM process WHERE run_id = ?1) AS "
      "processes FROM process WHERE run_id = ?1 AND throttle <> '' GROUP BY throttle "
      "ORDER BY throttled DESC, throttle");
  q.bind(run);
  const Columns cause(q);
  std::string text;
  while (q.step()) {
    text +=
        fmt::format("{}{} in {} of {} processes", text.empty() ? "" : ", ", cause.text("throttle"),
                    cause.integer("throttled"), cause.integer("processes"));
  }
  return text;
}

}  // namespace moegate
