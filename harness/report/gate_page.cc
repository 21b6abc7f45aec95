// SPDX-License-Identifier: Apache-2.0
// A verdict for people: the markdown of gate_report.h.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/escape.h"
#include "harness/report/gate_report.h"

namespace moegate {
namespace {

constexpr size_t kMaxRows = 60;          // of a table
constexpr size_t kCellCharacters = 240;  // so that one child's last words do not fill the page

/// A table with its title, and how many rows would be missed without it.
struct Section {
  std::string text;
  size_t rows = 0;
};

std::string level_text(double level) {
  return level > 0 ? fmt::format("{:.4g}", level) : "";
}

std::string bounds_text(const CaseVerdict& v) {
  if (!v.latency) return "";
  return fmt::format("{} … {}", percent(v.latency->low), percent(v.latency->high));
}

Table::Cell cell(const std::string& text) {
  return {markdown_escaped(clipped(valid_utf8(text), kCellCharacters))};
}

Section section(const std::string& title, const std::vector<const CaseVerdict*>& rows, bool host,
                const std::string& after = "") {
  if (rows.empty()) return {};
  const std::string unit = host ? " (ratio)" : " (us)";
  Table table;
  table.columns = {"Outcome",    "Case",   "Variant",     "Before" + unit,
                   "Now" + unit, "Change", "95 % bounds", "Why"};
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    const CaseVerdict& v = *rows[i];
    table.rows.push_back({{name_of(v.outcome)},
                          cell(v.id.key),
                          cell(v.id.variant),
                          {level_text(v.base), true},
                          {level_text(v.head), true},
                          {v.latency ? percent(v.latency->effect) : "", true},
                          {bounds_text(v)},
                          cell((v.stage == 2 ? "replayed: " : "") + v.why)});
  }
  std::string text =
      fmt::format("\n### {} ({})\n\n{}", title, rows.size(), render(table, Format::md));
  if (rows.size() > kMaxRows)
    text += fmt::format("\n{} more in verdict.json.\n", rows.size() - kMaxRows);
  return {text + after, rows.size()};
}

std::string not_judged_text(const GateResult& result) {
  for (const CaseVerdict* v : worst_first(result, {Outcome::fresh})) {
    if (v->against.empty()) continue;
    return fmt::format(
        "{} new cases were not judged: there is no row to compare them with, for example for {} "
        "{}.\n",
        result.not_judged, markdown_escaped(v->id.key), markdown_escaped(v->id.variant));
  }
  return "";
}

std::string counts_text(const GateReport& report) {
  size_t inconclusive = 0, disturbed = 0;
  std::string why;
  for (const CaseVerdict* v : worst_first(report.result, {Outcome::inconclusive})) {
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
  text += not_judged_text(report.result);
  text += fmt::format("{} are blind: they cannot see a change of {} on this machine.\n",
                      report.result.blind, limit(report.limits.blind_at));
  text += fmt::format(
      "A case fails from {} when more than {} is certain (family-wise error {:g}, Holm).\n",
      limit(report.limits.fail_at), limit(report.limits.margin), report.limits.alpha);
  return text;
}

std::string provenance_text(const GateReport& report) {
  const RunInfo& run = report.run;
  std::string text = fmt::format("\n<sub>{} of {}, {}, {} ({}), {}, ", describe(run), report.db,
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

std::string waivers_text(const GateResult& result) {
  std::string text;
  for (const std::string& problem : result.waiver_problems)
    text += "- **" + markdown_escaped(problem) + "**\n";
  for (const std::string& note : result.waiver_notes) text += "- " + markdown_escaped(note) + "\n";
  return text;
}

std::string suites_text(const GateResult& result) {
  std::string text;
  for (const auto& [suite, e] : result.suites) {
    text += fmt::format("- `{}`: {}{}{}\n", suite,
                        e.against.empty() ? "no baseline" : "against " + e.against,
                        e.note.empty() ? "" : "; ", e.note);
  }
  return text;
}

Section improvements(const GateReport& report, bool host) {
  auto rows = worst_first(report.result, {Outcome::improved});
  std::stable_sort(rows.begin(), rows.end(), [](const CaseVerdict* a, const CaseVerdict* b) {
    return a->latency->high < b->latency->high;
  });
  const std::string how =
      report.next.empty() ? ""
                          : "\nNo baseline gets faster by itself. To take this run, all of it: `" +
                                report.next + "`\n";
  return section("Improvements", rows, host, how);
}

/// As many of the sections, from the first, as leave room for the rest.
std::string fitted(const std::string& top, const std::vector<Section>& sections,
                   const std::string& bottom, size_t max_bytes) {
  for (size_t kept = sections.size();; --kept) {
    std::string text = top;
    size_t omitted = 0;
    for (size_t i = 0; i < sections.size(); ++i) {
      if (i < kept) text += sections[i].text;
      if (i >= kept) omitted += sections[i].rows;
    }
    if (omitted > 0) text += fmt::format("\n{} rows omitted, see verdict.json.\n", omitted);
    text += bottom;
    if (text.size() < max_bytes || kept == 0) return text;
  }
}

}  // namespace

std::vector<const CaseVerdict*> worst_first(const GateResult& result,
                                            const std::vector<Outcome>& outcomes) {
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

std::string markdown(const GateReport& report, size_t max_bytes) {
  const GateResult& result = report.result;
  const bool host = report.run.device.backend == Backend::host;
  const bool ab = !report.tables.empty();  // tables name every improvement
  const std::vector<Section> sections = {
      section("Failures", worst_first(result, kFailures), host),
      section("Waived", worst_first(result, {Outcome::waived}), host),
      ab ? Section{"\n" + report.tables, result.cases.size()} : improvements(report, host)};
  return fitted(
      "**" + sentence(result, report.exit) + "**\n\n" + waivers_text(result) + suites_text(result),
      sections, counts_text(report) + (ab ? "" : provenance_text(report)), max_bytes);
}

}  // namespace moegate
