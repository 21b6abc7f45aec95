// SPDX-License-Identifier: Apache-2.0
// A history as tables; the reading is in history.cc.
#include <fmt/format.h>

#include <cmath>

#include "harness/report/history.h"

namespace moegate {
namespace {

std::string short_uuid(const std::string& uuid) {
  constexpr size_t kShort = 12;  // "GPU-c869e42a"
  return uuid.substr(0, kShort);
}

std::string commit(const HistoryPoint& p) {
  constexpr size_t kShort = 12;
  return (p.git_sha.empty() ? "unknown" : p.git_sha.substr(0, kShort)) + (p.dirty ? "+dirty" : "");
}

std::string run_name(const HistoryPoint& p) {
  return p.label.empty() ? fmt::format("{}", p.run) : fmt::format("{} {}", p.run, p.label);
}

/// Whether the machine code is that of the point before.
std::string code_text(const HistoryPoint& p, const HistoryPoint* before) {
  if (!before || p.code.empty() || before->code.empty()) return "";
  return p.code == before->code ? "same" : "changed";
}

const ChangePoint* change_at(const HistorySeries& series, size_t i) {
  for (const ChangePoint& change : series.changes) {
    if (change.at == i) return &change;
  }
  return nullptr;
}

std::string size_of(const ChangePoint& change) {
  return percent(std::expm1(change.after - change.before));
}

std::vector<Table::Cell> cells_of(const HistorySeries& series, size_t i) {
  const HistoryPoint& p = series.points[i];
  const HistoryPoint* before = i > 0 ? &series.points[i - 1] : nullptr;
  const ChangePoint* change = change_at(series, i);
  const bool spread = p.level.n > 1;
  return {{p.started},
          {run_name(p)},
          {short_uuid(p.uuid)},
          {commit(p)},
          {fmt::format("{:.5g}", p.level.level()), true},
          {spread ? fmt::format("{:.2f}", 100 * p.level.sd_log) : "", true},
          {fmt::format("{}", p.level.n), true},
          {code_text(p, before)},
          {before ? percent(std::expm1(p.level.mean_log - before->level.mean_log)) : "", true},
          {change ? size_of(*change) : "", true}};
}

std::vector<std::string> columns_of(const std::string& level) {
  return {"started", "run",       "device", "commit", level,
          "sd %",    "processes", "code",   "change", "step"};
}

const char* unit_of(const HistorySeries& series) {
  return series.backend == Backend::host ? "ratio" : "us";
}

std::string changes_text(const HistorySeries& series) {
  std::string text;
  for (const ChangePoint& c : series.changes) {
    const HistoryPoint &before = series.points[c.at - 1], &after = series.points[c.at];
    text += fmt::format("- step of {} between {} (run {}) and {} (run {}), p = {:.2g}\n",
                        size_of(c), commit(before), before.run, commit(after), after.run, c.p);
  }
  return text.empty() ? "No step found.\n" : text;
}

}  // namespace

std::string markdown(const std::vector<HistorySeries>& all) {
  std::string text;
  for (const HistorySeries& series : all) {
    Table table{columns_of(unit_of(series)), {}};
    for (size_t i = 0; i < series.points.size(); ++i) table.rows.push_back(cells_of(series, i));
    text += fmt::format("{}**`{}` `{}`** on {}{}, timer {}, flush {}, protocol {}\n\n{}\n{}",
                        text.empty() ? "" : "\n", series.key, series.variant, series.klass,
                        series.uuid.empty() ? "" : " " + series.uuid, series.timer, series.flush,
                        series.protocol, render(table, Format::md), changes_text(series));
  }
  return text;
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
