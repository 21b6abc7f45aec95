// SPDX-License-Identifier: Apache-2.0
// A history as a page and as a table; the reading is in history.cc.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <optional>

#include "harness/base/text.h"
#include "harness/report/history.h"
#include "harness/report/page.h"

namespace moegate {
namespace {

std::string short_uuid(const std::string& uuid) {
  constexpr size_t kShort = 12;  // "GPU-c869e42a"
  return uuid.substr(0, kShort);
}

std::string run_name(const HistoryPoint& p) {
  return p.label.empty() ? fmt::format("{}", p.run) : fmt::format("{} {}", p.run, p.label);
}

/// Whether the machine code is that of the point before.
std::string code_text(const HistoryPoint& p, const HistoryPoint* before) {
  if (!before || p.code.empty() || before->code.empty()) return "";
  return p.code == before->code ? "same" : "changed";
}

/// The place of the change at a point among the changes; nothing where there is none.
std::optional<size_t> change_at(const HistorySeries& series, size_t i) {
  for (size_t c = 0; c < series.changes.size(); ++c) {
    if (series.changes[c].at == i) return c;
  }
  return std::nullopt;
}

std::string size_of(const ChangePoint& change) {
  return percent(std::expm1(change.after - change.before));
}

std::vector<Table::Cell> cells_of(const HistorySeries& series, size_t i) {
  const HistoryPoint& p = series.points[i];
  const HistoryPoint* before = i > 0 ? &series.points[i - 1] : nullptr;
  const auto change = change_at(series, i);
  const bool spread = p.level.n > 1;
  return {{p.started},
          {run_name(p)},
          {short_uuid(p.uuid)},
          {p.commit},
          {fmt::format("{:.5g}", p.level.level()), true},
          {spread ? fmt::format("{:.2f}", 100 * p.level.sd_log) : "", true},
          {fmt::format("{}", p.level.n), true},
          {code_text(p, before)},
          {before ? percent(std::expm1(p.level.mean_log - before->level.mean_log)) : "", true},
          {change ? size_of(series.changes[*change]) : "", true},
          {change ? name_of(series.steps[*change].kind) : ""}};
}

std::vector<std::string> columns_of(const std::string& level) {
  return {"started",   "run",  "device", "commit", level,  "sd %",
          "processes", "code", "change", "step",   "class"};
}

const char* unit_of(const HistorySeries& series) {
  return series.backend == Backend::host ? "ratio" : "us";
}

List changes(const HistorySeries& series) {
  List list;
  for (size_t i = 0; i < series.changes.size(); ++i) {
    const ChangePoint& c = series.changes[i];
    const HistoryPoint &before = series.points[c.at - 1], &after = series.points[c.at];
    const ClassifiedStep& step = series.steps[i];
    list.items.push_back({plain(fmt::format(
        "step of {} between {} (run {}) and {} (run {}), p = {:.2g}: {} ({})", size_of(c),
        before.commit, before.run, after.commit, after.run, c.p, name_of(step.kind), step.why))});
  }
  return list;
}

/// "**`key` `variant`** on nvidia-h200 GPU-1, timer cupti, flush read, protocol 1"
Line title(const HistorySeries& series) {
  Line line = {code(series.key), bold(" "), code(series.variant)};
  for (Span& span : line) span.bold = true;
  line.push_back(plain(fmt::format(" on {}{}, timer {}, flush {}, protocol {}", series.klass,
                                   series.uuid.empty() ? "" : " " + series.uuid, series.timer,
                                   series.flush, series.protocol)));
  return line;
}

/// The levels as a line, in the order of the table.
Line curve(const HistorySeries& series) {
  std::vector<double> logs;
  for (const HistoryPoint& p : series.points) logs.push_back(p.level.mean_log);
  return {plain(level_line(logs, unit_of(series)))};
}

}  // namespace

namespace {

std::string no_step(size_t runs) {
  constexpr size_t kEnough = 10;  // change_points() finds none in fewer
  return runs >= kEnough
             ? "No step found."
             : fmt::format(
                   "{} runs are too few to find a step where the code did not change; {} are "
                   "enough.",
                   runs, kEnough);
}

}  // namespace

Page history_page(const std::vector<HistorySeries>& all) {
  Page page;
  for (const HistorySeries& series : all) {
    Table table{columns_of(unit_of(series)), {}};
    for (size_t i = 0; i < series.points.size(); ++i) table.rows.push_back(cells_of(series, i));
    page.sections.push_back(
        {0, {Paragraph{{title(series)}}, Paragraph{{curve(series)}}, Rows{std::move(table)}}});
    if (series.changes.empty()) {
      page.sections.push_back({0, {Paragraph{{{plain(no_step(series.points.size()))}}}}});
    } else {
      page.sections.push_back({0, {changes(series)}});
    }
  }
  return page;
}

Table history_table(const std::vector<HistorySeries>& all) {
  Table table{{"case", "variant", "class", "timer", "flush", "protocol", "unit"}, {}};
  for (const std::string& column : columns_of("level")) table.columns.push_back(column);
  for (const HistorySeries& series : all) {
    for (size_t i = 0; i < series.points.size(); ++i) {
      std::vector<Table::Cell> row = {{series.key},     {series.variant},
                                      {series.klass},   {series.timer},
                                      {series.flush},   {fmt::format("{}", series.protocol), true},
                                      {unit_of(series)}};
      for (Table::Cell& cell : cells_of(series, i)) row.push_back(std::move(cell));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace moegate
