// SPDX-License-Identifier: Apache-2.0
#include "harness/site/verdict_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/site/site_files.h"
#include "harness/site/site_parts.h"

namespace moegate {
namespace {

Table::Cell number(double x) {
  return {fmt::format("{:.5g}", x), true};
}

/// As reports/pages/night-change.sql has it of a stored verdict.
Table changes_table(const GateResult& result) {
  std::vector<const CaseVerdict*> rows;
  for (const CaseVerdict& v : result.cases) {
    if (v.latency) rows.push_back(&v);
  }
  std::ranges::stable_sort(rows, {}, [](const CaseVerdict* v) { return v->latency->effect; });
  Table table{{"place", "case", "variant", "outcome", "change (%)", "from (%)", "to (%)"}, {}};
  for (const CaseVerdict* v : rows) {
    table.rows.push_back({{std::to_string(table.rows.size() + 1), true},
                          {v->id.key},
                          {v->id.variant},
                          {name_of(v->outcome)},
                          number(100 * v->latency->effect),
                          number(100 * v->latency->low),
                          number(100 * v->latency->high)});
  }
  return table;
}

/// As reports/pages/night-scatter.sql has it.
Table levels_table(const GateResult& result) {
  Table table{{"case", "variant", "outcome", "before", "now"}, {}};
  for (const CaseVerdict& v : result.cases) {
    if (!(v.base > 0 && v.head > 0)) continue;
    table.rows.push_back(
        {{v.id.key}, {v.id.variant}, {name_of(v.outcome)}, number(v.base), number(v.head)});
  }
  return table;
}

void add_chart(Page& page, const char* name, const char* title, Table table) {
  if (table.rows.empty()) return;
  page.sections.push_back({0, {Chart{page_chart(name), title, std::move(table), {}}}});
}

}  // namespace

std::string verdict_html(const GateReport& report) {
  Page page = gate_page(report);
  add_chart(page, "night-change",
            "Change of every judged row, sorted, with its bounds; below 0 is faster",
            changes_table(report.result));
  add_chart(page, "night-scatter", "Level before and now; below the line is faster",
            levels_table(report.result));
  page.sections.push_back({0, {Heading{"All rows"}, Rows{verdict_table(report.result)}}});
  return single_html(page, "Verdict of " + describe(report.run));
}

}  // namespace moegate
