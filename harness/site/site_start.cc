// SPDX-License-Identifier: Apache-2.0
// The start of a site: how things are, what is worst, how it came about.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/site/site_parts.h"

namespace moegate {
namespace {

constexpr size_t kShownRuns = 30;

Line title_of(const SiteRun& run) {
  Line line = health_of(run);
  line.push_back(plain(" in run "));
  line.push_back(linked(name_of(run), night_page(run.info.id)));
  line.push_back(plain(fmt::format(" of {}, commit {}, on {}", minute_of(run.info.started),
                                   commit_of(run.info), run.info.device.name)));
  return line;
}

/// The level of an operator in a run: how its rows compare with their own means over all runs.
struct Index {
  double sum = 0;
  int rows = 0;
};

/// Adds what a row of one series of runs says to its operator's index.
void add_row(const SiteData& data, const SiteRow& row, int conditions,
             std::map<std::pair<std::string, uint32_t>, Index>& indices) {
  double sum = 0;
  int n = 0;
  for (const SitePoint& p : row.points) {
    if (!p.level || data.runs[p.run].conditions != conditions) continue;
    sum += p.mean_log;
    ++n;
  }
  for (const SitePoint& p : row.points) {
    if (!p.level || data.runs[p.run].conditions != conditions) continue;
    Index& index = indices[{row.op, p.run}];
    index.sum += p.mean_log - sum / n;
    ++index.rows;
  }
}

Table sparklines(const SiteData& data, const SiteRun& newest) {
  std::map<std::pair<std::string, uint32_t>, Index> indices;
  for (const SiteRow& row : data.rows) add_row(data, row, newest.conditions, indices);
  Table table{{"operator", "run", "started", "commit", "level (%)", "rows"}, {}};
  for (const auto& [at, index] : indices) {
    const auto& [op, i] = at;
    const SiteRun& run = data.runs[i];
    table.rows.push_back({{op},
                          {std::to_string(run.info.id), true},
                          {minute_of(run.info.started)},
                          {commit_of(run.info)},
                          {fmt::format("{:.2f}", 100 * std::exp(index.sum / index.rows)), true},
                          {std::to_string(index.rows), true}});
  }
  add_links(table);
  return table;
}

Table runs_table(const SiteData& data, bool ab) {
  const std::vector<const char*> shown = {"regressed",    "wrong",    "missing",
                                          "inconclusive", "improved", "pass"};
  Table table{{"run", "label", "started", "device", "commit"}, {}};
  table.columns.insert(table.columns.end(), shown.begin(), shown.end());
  table.columns.emplace_back("blind");
  for (auto run = data.runs.rbegin(); run != data.runs.rend(); ++run) {
    if (run->ab != ab || (ab && !run->judged()) || table.rows.size() == kShownRuns) continue;
    const RunInfo& info = run->info;
    std::vector<Table::Cell> row = {{std::to_string(info.id), true},
                                    {info.label},
                                    {minute_of(info.started)},
                                    {info.device.name},
                                    {commit_of(info)}};
    const auto count = [&](int n) {
      row.push_back({run->judged() ? std::to_string(n) : "", true});
    };
    for (const char* outcome : shown) {
      const auto at = run->outcomes.find(outcome);
      count(at == run->outcomes.end() ? 0 : at->second);
    }
    count(run->blind);
    table.rows.push_back(std::move(row));
  }
  return table;
}

void add_list(Page& page, const char* title, Table table) {
  if (table.rows.empty()) return;
  add_links(table);
  page.sections.push_back({0, {Heading{title}, Rows{std::move(table)}}});
}

void add_newest(Page& page, Site& site, const SiteRun& run) {
  page.sections.push_back({0, {Heading{run.info.device.name}, Paragraph{{title_of(run)}}}});
  for (const std::string& report : reports_of("start"))
    add_report(page, site, report, {run.info.id});
  Table lines = sparklines(site.data, run);
  if (lines.rows.empty()) return;
  List operators;
  const std::string id = std::to_string(run.info.id);
  for (const auto& row : lines.rows) {
    if (row[1].text != id) continue;
    operators.items.push_back({linked(row[0].text, operator_page(row[0].text, run.info.id))});
  }
  page.sections.push_back({0,
                           {Heading{"Operators on " + run.info.device.name}, std::move(operators),
                            Chart{page_chart("operators"),
                                  "Level of each operator, 100 % is its mean; lower is better",
                                  std::move(lines),
                                  {}}}});
}

}  // namespace

Page start_page(Site& site) {
  Page page;
  for (const size_t i : newest_runs(site.data)) add_newest(page, site, site.data.runs[i]);
  add_list(page, "Runs", runs_table(site.data, false));
  add_list(page, "A/B", runs_table(site.data, true));
  return page;
}

}  // namespace moegate
