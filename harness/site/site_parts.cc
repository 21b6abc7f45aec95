// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"
#include "harness/site/page_json.h"
#include "harness/site/site_files.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// Worst first; what is not here is of no concern.
constexpr std::array kOutcomeWords = {"regressed", "wrong",        "missing",  "environment",
                                      "waived",    "inconclusive", "improved", "new",
                                      "pass",      "identical"};

}  // namespace

fs::path pages_folder() {
  return home() / "reports" / "pages";
}

std::string night_page(int64_t run) {
  return fmt::format("night={}", run);
}

void add_links(Table& table) {
  const auto has = [&](const char* name) { return std::ranges::count(table.columns, name) > 0; };
  if (has("case") && has("variant")) table.links["case"] = case_page("{case}", "{variant}");
  if (has("run")) table.links["run"] = "night={run}";
}

uint32_t file_hash(const std::string& id) {
  const std::string name = is_row_page(id) ? id.substr(0, id.rfind("&variant=")) : id;
  uint32_t hash = 2166136261;  // FNV-1a; app.js has the same
  for (const char c : shown_text(name)) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash;
}

bool is_row_page(const std::string& id) {
  return id.starts_with("case=");
}

std::string operator_page(const std::string& op, int64_t run) {
  return fmt::format("operator={}&run={}", op, run);
}

std::string case_page(const std::string& key, const std::string& variant) {
  return fmt::format("case={}&variant={}", key, variant);
}

std::string report_page(const std::string& report, int64_t run) {
  return fmt::format("report={}&run={}", report, run);
}

std::string name_of(const SiteRun& run) {
  const RunInfo& info = run.info;
  return info.label.empty() ? fmt::format("{}", info.id)
                            : fmt::format("{} {}", info.id, info.label);
}

std::string minute_of(const std::string& started) {
  constexpr size_t kMinute = 16;  // "2026-11-22T03:10"
  std::string text = started.substr(0, kMinute);
  std::ranges::replace(text, 'T', ' ');
  return text;
}

std::vector<std::string> reports_of(const std::string& page) {
  const fs::path path = pages_folder() / "pages.json";
  const auto pages = parse_json(path.string(), read_file(path));
  std::vector<std::string> reports;
  if (!pages.is_object() || !pages.contains(page) || !pages[page].is_array())
    usage_error("{}: has no list of reports for the page '{}'", path.string(), page);
  for (const auto& name : pages[page]) {
    if (!name.is_string()) usage_error("{}: '{}' names no report", path.string(), page);
    reports.push_back(name.get<std::string>());
  }
  return reports;
}

std::string page_chart(const std::string& name) {
  return (pages_folder() / (name + ".vg.json")).string();
}

ShownReport shown_report(const std::string& name) {
  const fs::path own = pages_folder() / (name + ".sql");
  const fs::path sql = is_file(own) ? own : find_report(name);
  const std::string title = title_of_report(sql);
  return {sql, title.empty() ? sql.stem().string() : title, has_chart(sql)};
}

void add_table(Page& page, const ShownReport& report, Table table) {
  if (table.rows.empty()) return;
  add_links(table);
  if (report.chart) {
    page.add(0, Chart{chart_of(report.sql).string(), report.title, std::move(table)});
  } else {
    page.add(0, Heading{report.title}, Rows{std::move(table)});
  }
}

void add_report(Page& page, Site& site, const std::string& report, const ReportArgs& about) {
  const ShownReport shown = shown_report(report);
  add_table(page, shown, for_readers(run_report(site.store, shown.sql, about), Readers::people));
}

Line health_of(const SiteRun& run) {
  if (!run.judged()) return {bold("not judged")};
  std::string text;
  size_t all = 0;
  for (const char* word : kOutcomeWords) {
    const auto at = run.outcomes.find(word);
    if (at == run.outcomes.end()) continue;
    all += at->second;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", at->second, word);
  }
  if (run.blind > 0) text += fmt::format(", {} blind", run.blind);
  return {bold(text), plain(" of " + count_of(all, "row"))};
}

}  // namespace moegate
