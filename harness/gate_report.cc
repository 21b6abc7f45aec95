// SPDX-License-Identifier: Apache-2.0
#include "harness/gate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace moegate {
namespace {

using Json = nlohmann::json;

// Forges cut or reject comments beyond 65,536 characters; a row is at most about 400.
constexpr size_t kMaxRows = 60;

std::string level_text(double level) {
  return level > 0 ? fmt::format("{:.4g}", level) : "";
}

std::string bounds_text(const CaseVerdict& v) {
  if (!v.latency) return "";
  return fmt::format("{} … {}", percent(v.latency->low), percent(v.latency->high));
}

/// Failures first by kind, regressions by their lower bound: by how bad they are at least.
std::vector<const CaseVerdict*> select(const GateResult& result, std::vector<Outcome> outcomes) {
  std::vector<const CaseVerdict*> rows;
  for (const CaseVerdict& v : result.cases) {
    if (std::find(outcomes.begin(), outcomes.end(), v.outcome) != outcomes.end())
      rows.push_back(&v);
  }
  const auto place = [&](const CaseVerdict* v) {
    return std::find(outcomes.begin(), outcomes.end(), v->outcome) - outcomes.begin();
  };
  const auto badness = [](const CaseVerdict* v) { return v->latency ? v->latency->low : 0; };
  std::stable_sort(rows.begin(), rows.end(), [&](const CaseVerdict* a, const CaseVerdict* b) {
    if (place(a) != place(b)) return place(a) < place(b);
    return badness(a) > badness(b);
  });
  return rows;
}

std::string section(const std::string& title, const std::vector<const CaseVerdict*>& rows,
                    bool host) {
  if (rows.empty()) return "";
  const std::string unit = host ? " (ratio)" : " (us)";
  Table table;
  table.columns = {"Outcome",    "Case",   "Variant",     "Before" + unit,
                   "Now" + unit, "Change", "95 % bounds", "Why"};
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    const CaseVerdict& v = *rows[i];
    table.rows.push_back({{name_of(v.outcome)},
                          {v.id.key},
                          {v.id.variant},
                          {level_text(v.base), true},
                          {level_text(v.head), true},
                          {v.latency ? percent(v.latency->effect) : "", true},
                          {bounds_text(v)},
                          {v.why}});
  }
  std::string text =
      fmt::format("\n### {} ({})\n\n{}", title, rows.size(), render(table, Format::md));
  if (rows.size() > kMaxRows)
    text += fmt::format("\n{} more in verdict.json.\n", rows.size() - kMaxRows);
  return text;
}

std::string limit(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string counts_text(const GateReport& report) {
  size_t inconclusive = 0, disturbed = 0;
  std::string why;
  for (const CaseVerdict* v : select(report.result, {Outcome::inconclusive})) {
    ++(v->latency ? inconclusive : disturbed);
    if (!v->latency) why = v->why;
  }
  std::string text = "\n";
  text +=
      fmt::format("{} of {} judged cases are inconclusive: neither shown slower nor shown equal.\n",
                  inconclusive, report.result.judged);
  if (disturbed > 0) {
    text += fmt::format("{} cases could not be judged, for example: {}.\n", disturbed, why);
  }
  text += fmt::format("{} are blind: they cannot see a change of {} on this machine.\n",
                      report.result.blind, limit(report.limits.blind_at));
  text += fmt::format(
      "A case fails from {} when more than {} is certain (family-wise error {:g}, Holm).\n",
      limit(report.limits.fail_at), limit(report.limits.margin), report.limits.alpha);
  return text;
}

std::string provenance_text(const GateReport& report) {
  const RunInfo& run = report.run;
  std::string text =
      fmt::format("\n<sub>{} of {}, {}, {} ({}), driver {}, ", describe(run), report.db,
                  run.started, run.device.name, run.device.uuid, run.device.driver);
  text += fmt::format("commit {}{}, {}, protocol {}, timer {}, flush {}, {} rounds",
                      run.git_sha.empty() ? "unknown" : run.git_sha, run.dirty ? " **DIRTY**" : "",
                      run.build, run.protocol, run.timer, run.flush, run.rounds);
  if (run.status != "complete") text += fmt::format(", **{}**", run.status);
  if (!report.throttle.empty()) text += fmt::format(", clocks throttled: {}", report.throttle);
  text += "</sub>\n\nTo repeat: `" + run.command + "`\n";
  if (!report.next.empty()) text += "To bless: `" + report.next + "`\n";
  return text;
}

Json case_json(const CaseVerdict& v) {
  Json j = {{"suite", v.id.suite},           {"key", v.id.key},      {"variant", v.id.variant},
            {"outcome", name_of(v.outcome)}, {"against", v.against}, {"why", v.why}};
  if (v.base > 0) j["base"] = v.base;
  if (v.head > 0) j["head"] = v.head;
  if (v.latency) {
    const Judgement& l = *v.latency;
    j["effect"] = l.effect;
    j["low"] = l.low;
    j["high"] = l.high;
    j["p"] = l.p;
    j["p_adjusted"] = l.p_adjusted;
    if (l.mde > 0) j["mde"] = l.mde;
    j["blind"] = l.blind;
  }
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

std::string markdown(const GateReport& report) {
  const GateResult& result = report.result;
  const bool host = report.run.device.backend == Backend::host;
  std::string text = "**" + sentence(result, report.exit) + "**\n\n";
  for (const auto& [suite, e] : result.suites) {
    text += fmt::format("- `{}`: {}{}{}\n", suite,
                        e.against.empty() ? "no baseline" : "against " + e.against,
                        e.note.empty() ? "" : "; ", e.note);
  }
  text += section(
      "Failures",
      select(result, {Outcome::regressed, Outcome::wrong, Outcome::missing, Outcome::environment}),
      host);
  auto improved = select(result, {Outcome::improved});
  std::stable_sort(improved.begin(), improved.end(),
                   [](const CaseVerdict* a, const CaseVerdict* b) {
                     return a->latency->high < b->latency->high;
                   });
  text += section("Improvements", improved, host);
  return text + counts_text(report) + provenance_text(report);
}

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
            {"blind", result.blind},
            {"not_run", result.not_run},
            {"unsupported", result.unsupported},
            {"median_change", result.median_change},
            {"throttle", report.throttle}};
  for (int o = 0; o < kOutcomes; ++o) {
    const auto outcome = static_cast<Outcome>(o);
    const auto it = result.counts.find(outcome);
    j["counts"][name_of(outcome)] = it == result.counts.end() ? 0 : it->second;
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
  Table table;
  table.columns = {"outcome", "suite", "case", "variant",    "base", "head",    "effect",
                   "low",     "high",  "p",    "p_adjusted", "mde",  "against", "why"};
  const auto number = [](double x) { return Table::Cell{fmt::format("{:.5g}", x), true}; };
  for (const CaseVerdict& v : result.cases) {
    const Judgement l = v.latency.value_or(Judgement{});
    const auto latency = [&](double x) { return v.latency ? number(x) : Table::Cell{"", true}; };
    table.rows.push_back({{name_of(v.outcome)},
                          {v.id.suite},
                          {v.id.key},
                          {v.id.variant},
                          {level_text(v.base), true},
                          {level_text(v.head), true},
                          latency(l.effect),
                          latency(l.low),
                          latency(l.high),
                          latency(l.p),
                          latency(l.p_adjusted),
                          latency(l.mde),
                          {v.against},
                          {v.why}});
  }
  return table;
}

void store_verdicts(Store& store, int64_t run, const GateResult& result) {
  Database& db = store.database();
  Transaction transaction(db);
  for (const auto& [suite, e] : result.suites) {
    Statement(db, "DELETE FROM verdict WHERE run_id = ?1 AND against = ?2")
        .bind(run, e.against)
        .run();
  }
  const double none = std::nan("");  // stored as NULL
  for (const CaseVerdict& v : result.cases) {
    const bool judged = v.latency.has_value();
    const Judgement l = v.latency.value_or(Judgement{});
    Statement(
        db,
        "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base, head, "
        "effect, low, high, df, p, p_adjusted, mde, blind, family, waiver, why) VALUES (?1, ?2, "
        "?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)")
        .bind(run, v.against, v.id.suite, v.id.key, v.id.variant, name_of(v.outcome), v.stage,
              v.base > 0 ? v.base : none, v.head > 0 ? v.head : none, judged ? l.effect : none,
              judged ? l.low : none, judged ? l.high : none, judged && l.df > 0 ? l.df : none,
              judged ? l.p : none, judged ? l.p_adjusted : none, judged && l.mde > 0 ? l.mde : none,
              l.blind, result.judged, v.waiver, v.why)
        .run();
  }
  transaction.commit();
}

std::string throttle_summary(Store& store, int64_t run) {
  Statement q(
      store.database(),
      "SELECT throttle, count(*), (SELECT count(*) FROM process WHERE run_id = ?1) FROM process "
      "WHERE run_id = ?1 AND throttle <> '' GROUP BY throttle ORDER BY 2 DESC, 1");
  q.bind(run);
  std::string text;
  while (q.step()) {
    text += fmt::format("{}{} in {} of {} processes", text.empty() ? "" : ", ", q.text(0),
                        q.integer(1), q.integer(2));
  }
  return text;
}

}  // namespace moegate
