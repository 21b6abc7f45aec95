// SPDX-License-Identifier: Apache-2.0
// A history as a page and as a table; the reading is in history.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "harness/judge/steps.h"
#include "harness/report/history.h"
#include "harness/report/page.h"

namespace moegate {
namespace {

/// The place of the change at a run among the changes; nothing where there is none.
std::optional<size_t> change_at(const HistorySeries& series, int64_t run) {
  for (size_t c = 0; c < series.changes.size(); ++c) {
    if (series.points[series.changes[c].at].run == run) return c;
  }
  return std::nullopt;
}

constexpr size_t kShortUuid = 12;  // "GPU-c869e42a"

/// How a change of a logarithm is written.
using Change = std::string (*)(double log);

std::string percent_of(double log) {
  return percent(std::expm1(log));
}

/// `before`: the point before that compares with it.
std::vector<Table::Cell> cells_of(const HistorySeries& series, const HistoryPoint& p, bool noisy,
                                  const HistoryPoint* before, Change written) {
  const auto change = change_at(series, p.run);
  const bool spread = p.level.n > 1;
  const auto step = [&](const ChangePoint& c) { return written(c.after - c.before); };
  using Cell = Table::Cell;
  return Table::row(p.started, p.run, p.label, p.uuid.substr(0, kShortUuid), p.commit,
                    Table::number("{:.5g}", p.level.level()),
                    Cell{spread ? fmt::format("{:.2f}", 100 * p.level.sd_log) : "", true},
                    p.level.n, noisy ? Cell{.text = "noisy", .tone = Tone::doubtful} : Cell{"ok"},
                    before ? code_between(before->code, p.code) : "",
                    Cell{before ? written(p.level.mean_log - before->level.mean_log) : "", true},
                    Cell{change ? step(series.changes[*change]) : "", true},
                    change ? name_of(series.steps[*change].kind) : "");
}

std::vector<std::string> columns_of(const std::string& level) {
  return {"started",   "run",    "label", "device", "commit", level,  "sd %",
          "processes", "status", "code",  "change", "step",   "class"};
}

std::vector<std::vector<Table::Cell>> rows_of(const HistorySeries& series, Change written) {
  std::vector<std::vector<Table::Cell>> rows;
  const HistoryPoint* before = nullptr;
  const std::vector<HistoryPoint> points = all_points(series);
  for (const HistoryPoint& p : points) {
    const bool noisy = std::ranges::count(series.noisy, p.run, &HistoryPoint::run) > 0;
    rows.push_back(cells_of(series, p, noisy, noisy ? nullptr : before, written));
    if (!noisy) before = &p;
  }
  return rows;
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
    list.items.push_back(
        {plain(fmt::format("step of {} between {} (run {}) and {} (run {}), p = {:.2g}: {} ({})",
                           percent_of(c.after - c.before), before.commit, before.run, after.commit,
                           after.run, c.p, name_of(step.kind), step.why))});
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

Line curve(const HistorySeries& series) {
  std::vector<double> logs;
  for (const HistoryPoint& p : all_points(series)) logs.push_back(p.level.mean_log);
  return {plain(level_line(logs, unit_of(series)))};
}

std::string no_step(const HistorySeries& series) {
  const std::string found = no_step_in(series.points.size());
  if (series.noisy.empty()) return found;
  return fmt::format("{} No step is searched over the {} that are noisy.", found,
                     series.noisy.size());
}

}  // namespace

Page history_page(const std::vector<HistorySeries>& all) {
  Page page;
  for (const HistorySeries& series : all) {
    Table table{columns_of(unit_of(series)), rows_of(series, percent_of)};
    table.keep = {"started", "run",    "commit", unit_of(series), "sd %",
                  "status",  "change", "step",   "class"};
    page.add(0, Paragraph{{title(series)}}, Paragraph{{curve(series)}}, Rows{std::move(table)});
    if (series.changes.empty()) {
      page.add(0, paragraph(no_step(series)));
    } else {
      page.add(0, changes(series));
    }
  }
  return page;
}

Table history_table(const std::vector<HistorySeries>& all) {
  Table table{{"case", "variant", "class", "timer", "flush", "protocol", "unit"}};
  for (const std::string& column : columns_of("level")) table.columns.push_back(column);
  const Change share = [](double log) { return fmt::format("{:.4f}", std::expm1(log)); };
  for (const HistorySeries& series : all) {
    for (auto& cells : rows_of(series, share)) {
      table.add(series.key, series.variant, series.klass, series.timer, series.flush,
                series.protocol, unit_of(series));
      std::ranges::move(cells, std::back_inserter(table.rows.back()));
    }
  }
  return table;
}

}  // namespace moegate
