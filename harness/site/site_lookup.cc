// SPDX-License-Identifier: Apache-2.0
// What changed lately, and what the scripts look up: every page, run and row, and the levels of
// each run, for a search and for comparing two runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/report/what_changed.h"
#include "harness/site/site_parts.h"

namespace moegate {
namespace {

constexpr const char* kSomeDays = "-7 days";

std::string some_days_before(Store& store, int64_t run) {
  Statement q(store.database(), "SELECT date(started, ?2) FROM run WHERE run_id = ?1");
  q.bind(run, kSomeDays);
  q.step();
  return q.text(0);
}

std::vector<Table> rows_of_groups(const WhatChanged& changed) {
  std::vector<Table> tables;
  for (const ChangeGroup& group : changed.groups) {
    Table& table = tables.emplace_back();
    table.columns = {"case", "variant", "change (%)", "why"};
    for (const ChangedRow& row : group.rows) {
      const Table::Cell change{row.change == 0 ? "" : fmt::format("{:.2f}", 100 * row.change),
                               true};
      table.add(row.id.key, row.id.variant, change, row.why);
    }
    add_links(table);
  }
  return tables;
}

/// `runs`: those that compare with it, and itself.
void add_changes_of(Page& page, Site& site, const SiteRun& head, const std::vector<int64_t>& runs) {
  const int64_t id = head.info.id;
  const Heading title{"What changed on " + head.info.device.name};
  if (runs.size() < 2) {
    page.add(0, title,
             Paragraph{{{plain("No other run compares with "),
                         linked("run " + name_of(head), night_page(id)), plain(".")}}});
    return;
  }
  const WhatChanged changed =
      what_changed(site.store, runs.front(), id, Limits::of(head.info.device.backend));
  page.add(0, title, Paragraph{{what_changed_line(changed)}});
  if (changed.groups.empty()) return;
  Table groups = groups_table(changed);
  add_links(groups);
  page.sections.back().blocks.push_back(Rows{std::move(groups), 0, rows_of_groups(changed)});
}

/// Of the runs that compare with one another, so many of the newest have their levels in a file.
constexpr size_t kCompared = 60;

/// By id, so many of each conditions.
std::set<int64_t> compared_runs(const SiteData& data) {
  std::map<int, size_t> of_conditions;
  std::set<int64_t> runs;
  for (auto run = data.runs.rbegin(); run != data.runs.rend(); ++run) {
    if (!run->ab && of_conditions[run->conditions]++ < kCompared) runs.insert(run->info.id);
  }
  return runs;
}

/// `series`: runs of one number compare; empty where there are no levels of the run.
Table known_runs(const SiteData& data) {
  const std::set<int64_t> compared = compared_runs(data);
  Table table{{"run", "label", "started", "device", "commit", "series"}};
  for (auto run = data.runs.rbegin(); run != data.runs.rend(); ++run) {
    const RunInfo& info = run->info;
    const bool has_levels = compared.contains(info.id);
    table.add(info.id, info.label, minute_of(info.started), info.device.name,
              short_measured_commit(info),
              Table::Cell{has_levels ? std::to_string(run->conditions) : "", true});
  }
  add_links(table);
  return table;
}

Table known_rows(const SiteData& data) {
  Table table{{"case", "variant"}};
  for (const SiteRow& row : data.rows) table.add(row.key, row.variant);
  add_links(table);
  return table;
}

/// What a run says of the rows, in their order. half: of the 95 % interval of the mean, in percent.
/// code: equal numbers are equal code.
Table levels_table(const SiteData& data, uint32_t run) {
  Table table{{"level", "half", "code"}};
  for (const SiteRow& row : data.rows) {
    const auto p = std::ranges::lower_bound(row.points, run, {}, &SitePoint::run);
    auto& cells = table.rows.emplace_back(3, Table::Cell{});
    if (p == row.points.end() || p->run != run || !p->level) continue;
    const double half = half_interval(*p);
    cells = {{fmt::format("{:.5g}", std::exp(p->mean_log)), true},
             {std::isnan(half) ? "" : fmt::format("{:.3g}", 100 * half), true},
             {p->code == 0 ? "" : std::to_string(p->code), true}};
  }
  return table;
}

}  // namespace

void add_changes(Page& page, Site& site) {
  // Of each device the last run that others compare with: someone's own of a few rows may be later.
  std::map<std::string, const SiteRun*> alone;  // the last that no other compares with
  std::set<std::string> shown;
  for (auto run = site.data.runs.rbegin(); run != site.data.runs.rend(); ++run) {
    const std::string& klass = run->info.device.klass;
    if (run->ab || shown.contains(klass)) continue;
    const int64_t id = run->info.id;
    const auto runs = comparable_runs(site.store, id, some_days_before(site.store, id));
    if (runs.size() < 2) {
      alone.emplace(klass, &*run);
      continue;
    }
    shown.insert(klass);
    add_changes_of(page, site, *run, runs);
  }
  for (const auto& [klass, run] : alone) {
    if (!shown.contains(klass)) add_changes_of(page, site, *run, {run->info.id});
  }
}

void add_lookups(const std::shared_ptr<Site>& site, std::vector<SitePage>& pages) {
  Table known{{"page", "title"}, {}, {{"page", "{page}"}, {"title", "{page}"}}};
  for (const SitePage& page : pages) known.add(page.id, page.title);
  pages.push_back({"everything", "Everything", [site, known] {
                     Page page;
                     page.add(0, Rows{known}, Rows{known_runs(site->data)},
                              Rows{known_rows(site->data)});
                     return page;
                   }});
  const std::set<int64_t> compared = compared_runs(site->data);
  for (uint32_t i = 0; i < site->data.runs.size(); ++i) {
    const int64_t id = site->data.runs[i].info.id;
    if (!compared.contains(id)) continue;
    pages.push_back({fmt::format("levels={}", id), fmt::format("Levels of run {}", id), [site, i] {
                       Page page;
                       page.add(0, Rows{levels_table(site->data, i)});
                       return page;
                     }});
  }
}

std::string compare_page(const SiteData& data, const SiteRun& run) {
  const std::set<int64_t> compared = compared_runs(data);
  int64_t before = 0;
  for (const SiteRun& other : data.runs) {
    const bool earlier = other.info.id < run.info.id && other.conditions == run.conditions;
    if (earlier && compared.contains(other.info.id)) before = other.info.id;
  }
  return before == 0 || run.ab ? "" : fmt::format("compare={}..{}", before, run.info.id);
}

}  // namespace moegate
