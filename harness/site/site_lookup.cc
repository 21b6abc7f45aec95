// SPDX-License-Identifier: Apache-2.0
// What changed lately.
#include <fmt/format.h>

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
      table.rows.push_back({{row.id.key},
                            {row.id.variant},
                            {row.change == 0 ? "" : fmt::format("{:.2f}", 100 * row.change), true},
                            {row.why}});
    }
    add_links(table);
  }
  return tables;
}

void add_changes_of(Page& page, Site& site, const SiteRun& head) {
  const int64_t id = head.info.id;
  const auto runs = comparable_runs(site.store, id, some_days_before(site.store, id));
  Section section{0, {Heading{"What changed on " + head.info.device.name}}};
  if (runs.size() < 2) {
    section.blocks.push_back(
        Paragraph{{{plain("No other run compares with "),
                    linked("run " + name_of(head), night_page(id)), plain(".")}}});
  } else {
    const WhatChanged changed =
        what_changed(site.store, runs.front(), id, Limits::of(head.info.device.backend));
    section.blocks.push_back(Paragraph{{what_changed_line(changed)}});
    Table groups = groups_table(changed);
    add_links(groups);
    if (!groups.rows.empty())
      section.blocks.push_back(Rows{std::move(groups), 0, rows_of_groups(changed)});
  }
  page.sections.push_back(std::move(section));
}

}  // namespace

void add_changes(Page& page, Site& site) {
  std::set<std::string> shown;
  for (auto run = site.data.runs.rbegin(); run != site.data.runs.rend(); ++run) {
    if (!run->ab && shown.insert(run->info.device.klass).second) add_changes_of(page, site, *run);
  }
}

}  // namespace moegate
