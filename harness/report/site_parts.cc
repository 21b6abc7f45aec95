// SPDX-License-Identifier: Apache-2.0
#include "harness/report/site_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/files.h"
#include "harness/base/home.h"
#include "harness/base/json_text.h"
#include "harness/report/chart_file.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// A report of a page is in reports/pages/ or is one of reports/.
fs::path page_report(const std::string& name) {
  const fs::path own = home() / "reports" / "pages" / (name + ".sql");
  return is_file(own) ? own : find_report(name);
}

size_t column_of(const Table& table, const char* name) {
  return static_cast<size_t>(std::ranges::find(table.columns, name) - table.columns.begin());
}

void add_links(Table& table) {
  const size_t none = table.columns.size();
  const size_t key = column_of(table, "case"), variant = column_of(table, "variant");
  const size_t run = column_of(table, "run");
  for (auto& row : table.rows) {
    if (key != none && variant != none) row[key].link = case_page(row[key].text, row[variant].text);
    if (run != none && row[run].number) row[run].link = "night=" + row[run].text;
  }
}

/// Worst first; what is not here is of no concern.
constexpr std::array kOutcomeWords = {"regressed", "wrong",        "missing",  "environment",
                                      "waived",    "inconclusive", "improved", "new",
                                      "pass",      "identical"};

}  // namespace

std::string night_page(int64_t run) {
  return fmt::format("night={}", run);
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

std::string day_text(std::chrono::sys_days day) {
  const std::chrono::year_month_day date = day;
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string commit_of(const RunInfo& run) {
  constexpr size_t kShort = 12;
  if (run.git_sha.empty()) return "unknown";
  return run.git_sha.substr(0, kShort) + (run.dirty ? "+dirty" : "");
}

std::vector<std::string> reports_of(const std::string& page) {
  const fs::path path = home() / "reports" / "pages" / "pages.json";
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

bool has_report(const std::string& name) {
  return is_file(home() / "reports" / (name + ".sql"));
}

std::string page_chart(const std::string& name) {
  return (home() / "reports" / "pages" / (name + ".vg.json")).string();
}

void add_report(Page& page, Site& site, const std::string& report, const ReportArgs& about) {
  const fs::path sql = page_report(report);
  Table table = run_report(site.store, sql, about);
  if (table.rows.empty()) return;
  add_links(table);
  const std::string title = title_of_report(sql);
  const std::string name = title.empty() ? sql.stem().string() : title;
  if (has_chart(sql)) {
    page.sections.push_back({0, {Chart{chart_of(sql).string(), name, std::move(table), {}}}});
  } else {
    page.sections.push_back({0, {Heading{name}, Rows{std::move(table)}}});
  }
}

Line health_of(const SiteRun& run) {
  if (!run.judged()) return {bold("not judged")};
  std::string text;
  int all = 0;
  for (const char* word : kOutcomeWords) {
    const auto at = run.outcomes.find(word);
    if (at == run.outcomes.end()) continue;
    all += at->second;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", at->second, word);
  }
  if (run.blind > 0) text += fmt::format(", {} blind", run.blind);
  return {bold(text), plain(fmt::format(" of {} rows", all))};
}

}  // namespace moegate
