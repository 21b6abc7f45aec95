// SPDX-License-Identifier: Apache-2.0
#include "harness/report/what_changed.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/judge/comparison.h"
#include "harness/report/history.h"
#include "harness/store/row_profiles.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

/// What each run says of a row; null where it has none of the row's kind.
std::vector<const RunRow*> in_runs(const std::vector<RunRows>& runs, const CaseId& id) {
  const auto name = row_name(id.key, id.variant);
  return mapped(runs, [&](const RunRows& rows) { return find_or_null(rows, name); });
}

/// The levels of a row; NaN where there is none.
std::vector<double> levels_of(const std::vector<const RunRow*>& row) {
  return mapped(row, [](const RunRow* one) { return one ? one->mean_log : std::nan(""); });
}

/// The first run of the new level: two levels split there leave the least squares.
size_t split_of(const std::vector<double>& levels) {
  const auto squares = [&](size_t first, size_t last) {
    double sum = 0, square = 0;
    size_t n = 0;
    for (size_t i = first; i < last; ++i) {
      if (std::isnan(levels[i])) continue;
      sum += levels[i];
      square += levels[i] * levels[i];
      ++n;
    }
    return n == 0 ? 0 : square - sum * sum / static_cast<double>(n);
  };
  size_t best = levels.size() - 1;
  double least = std::numeric_limits<double>::infinity();
  for (size_t at = 1; at < levels.size(); ++at) {
    if (std::isnan(levels[at])) continue;
    const double left = squares(0, at) + squares(at, levels.size());
    if (left < least) {
      least = left;
      best = at;
    }
  }
  return best;
}

std::optional<ChangeKind> kind_of(Outcome outcome) {
  static const std::map<Outcome, ChangeKind> kinds = {{Outcome::wrong, ChangeKind::wrong},
                                                      {Outcome::regressed, ChangeKind::slower},
                                                      {Outcome::improved, ChangeKind::faster},
                                                      {Outcome::missing, ChangeKind::lost},
                                                      {Outcome::fresh, ChangeKind::added}};
  const auto kind = kinds.find(outcome);
  return kind == kinds.end() ? std::nullopt : std::optional(kind->second);
}

bool is_of_level(ChangeKind kind) {
  return kind != ChangeKind::wrong && kind != ChangeKind::lost && kind != ChangeKind::added;
}

/// By how much a row moved whose yardstick is other code than before. A busy machine moves its own
/// time alone, an edit of the yardstick its ratio alone: the smaller of the two is its own. 0: they
/// do not agree, or what is left is within `limit`.
double moved_with_ratio(const CaseVerdict& v, double ratio, double limit) {
  if (!v.by_time || v.yardstick || !(v.base > 0 && v.head > 0) || std::isnan(ratio)) return 0;
  const double time = std::log(v.head / v.base);
  const double least = std::min(std::abs(time), std::abs(ratio));
  if (time * ratio <= 0 || least <= std::log1p(limit)) return 0;
  return std::expm1(std::copysign(least, time));
}

struct Moved {
  ChangeKind kind;
  double by;  // ChangedRow::change
  std::string why;
};

/// Nothing where the row did not change. `ratio`: what its logarithm moved by.
std::optional<Moved> change_in(const CaseVerdict& v, double ratio, double limit) {
  const double told = v.base > 0 && v.head > 0 ? v.head / v.base - 1 : 0;
  if (const auto kind = kind_of(v.outcome)) return Moved{*kind, told, v.why};
  if (v.outcome != Outcome::inconclusive) return std::nullopt;
  const double by = moved_with_ratio(v, ratio, limit);
  if (by == 0) return std::nullopt;
  return Moved{by > 0 ? ChangeKind::perhaps_slower : ChangeKind::perhaps_faster, by,
               uncertain(by) + ": " + v.why};
}

using Statuses = std::map<CaseId, Status, Sides::key_compare>;

/// Whether a row failed before as it does now: that is no change.
bool failed_alike(const CaseId& id, const Statuses& before, const Sides& sides) {
  const Status* was = find_or_null(before, id);
  const Side* is = find_or_null(sides, id);
  return was && is && is_failure(is->status) && *was == is->status;
}

void add_trend(ChangeGroup& group, const std::vector<RunRows>& runs) {
  std::vector<double> sums(runs.size(), 0);
  std::vector<int> n(runs.size(), 0);
  for (const ChangedRow& row : group.rows) {
    const std::vector<double> of_row = levels_of(in_runs(runs, row.id));
    const auto first = std::ranges::find_if_not(of_row, [](double l) { return std::isnan(l); });
    for (size_t i = 0; i < of_row.size(); ++i) {
      if (std::isnan(of_row[i])) continue;
      sums[i] += of_row[i] - *first;
      ++n[i];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    group.trend.push_back(n[i] == 0 ? std::nan("") : sums[i] / n[i]);
  }
}

std::string commits_of(const ChangeGroup& group) {
  const std::string before = short_measured_commit(group.before);
  const std::string after = short_measured_commit(group.after);
  return before == after ? after : before + ".." + after;
}

std::string without_dirty(const RunInfo& run) {
  const std::string commit = measured_commit(run);
  return commit.substr(0, commit.find('+'));
}

std::string link_of(const ChangeGroup& group, const std::string& address) {
  const std::string before = without_dirty(group.before), after = without_dirty(group.after);
  if (address.empty() || after.empty()) return "";
  return before == after || before.empty()
             ? fmt::format("{}/commit/{}", address, after)
             : fmt::format("{}/compare/{}...{}", address, before, after);
}

std::string change_of(const ChangeGroup& group) {
  return is_of_level(group.kind) ? percent(group.change) : "";
}

}  // namespace

const char* name_of(ChangeKind kind) {
  constexpr std::array kNames = {"wrong",          "slower", "perhaps slower", "lost", "faster",
                                 "perhaps faster", "new"};
  return kNames.at(static_cast<size_t>(kind));
}

std::vector<int64_t> comparable_runs(Store& store, int64_t head, const std::string& since) {
  // Of the same suites and selection, because what a run of others lacks is not lost.
  Statement q(
      store.database(),
      "WITH measured AS (SELECT run_id, started, (SELECT group_concat(suite, char(10)) FROM "
      "(SELECT DISTINCT suite FROM run_case WHERE run_case.run_id = run.run_id ORDER BY 1)) "
      "AS suites, json_extract(options, '$.filter', '$.kernel', '$.ops') AS selection, class, "
      "timer, flush, protocol, CASE backend WHEN 'host' THEN class ELSE "
      "device.uuid END AS machine FROM run JOIN device USING (device_id) WHERE "
      "status = 'complete' AND task = 'measure' AND NOT EXISTS (SELECT 1 FROM tag WHERE "
      "tag.run_id = run.run_id AND name IN ('ab', 'selftest'))) "
      "SELECT m.run_id, m.started FROM measured m JOIN measured h ON h.run_id = ?1 WHERE "
      "m.suites = h.suites AND m.selection = h.selection AND m.class = h.class AND m.machine = "
      "h.machine AND m.timer = "
      "h.timer AND m.flush = h.flush AND m.protocol = h.protocol AND (m.started, m.run_id) "
      "<= (h.started, h.run_id) ORDER BY m.started, m.run_id");
  q.bind(head);
  std::vector<int64_t> runs;
  while (q.step()) {
    if (q.text(1) < since) runs.clear();  // only the last one before
    runs.push_back(q.integer(0));
  }
  return runs;
}

int64_t last_comparable_run(Store& store) {
  Statement q(store.database(),
              "SELECT run_id FROM run WHERE status = 'complete' AND task = 'measure' ORDER BY "
              "started DESC, run_id DESC");
  while (q.step()) {
    if (comparable_runs(store, q.integer(0), "").size() > 1) return q.integer(0);
  }
  return store.find_run("latest");
}

WhatChanged what_changed(Store& store, int64_t base, int64_t head, const Limits& limits) {
  WhatChanged changed{.base = store.run_info(base), .head = store.run_info(head)};
  check_comparable(header_of(changed.base, ""), header_of(changed.head, ""),
                   describe(changed.base));
  const auto read = [](Store& from, int64_t run) { return collect(from.each_level(run)); };
  auto [before, sides] = of_two_runs(store, base, head, read);
  Statuses status_before;
  for (const auto& [id, side] : before) status_before[id] = side.status;
  const GateResult result =
      judge_runs(changed.base, changed.head, std::move(before), sides, limits);

  std::vector<int64_t> runs = comparable_runs(store, head, changed.base.started);
  std::erase_if(runs, [&](int64_t run) { return run < base && run != base; });
  // Who asks for two runs gets those two, nights or not.
  if (std::ranges::find(runs, base) == runs.end()) runs.insert(runs.begin(), base);
  if (std::ranges::find(runs, head) == runs.end()) runs.push_back(head);
  changed.runs = runs.size();
  std::vector<RunRows> run_rows;
  std::vector<RunInfo> infos;
  for (const int64_t run : runs) {
    run_rows.push_back(read_run_rows(store, run));
    infos.push_back(store.run_info(run));
  }
  const size_t first = static_cast<size_t>(std::ranges::find(runs, base) - runs.begin());
  std::map<std::tuple<ChangeKind, std::string, std::string, size_t>, ChangeGroup> groups;
  for (const CaseVerdict& v : result.cases) {
    ++changed.rows;
    changed.inconclusive += v.outcome == Outcome::inconclusive;
    const std::vector<const RunRow*> row = in_runs(run_rows, v.id);
    const std::vector<double> of_row = levels_of(row);
    const auto change = change_in(v, of_row.back() - of_row[first], limits.fail_at);
    if (!change || failed_alike(v.id, status_before, sides)) continue;
    const ChangeKind kind = change->kind;
    const bool moved = is_of_level(kind);
    const size_t split = moved ? split_of(of_row) : runs.size() - 1;
    const std::string op = operator_of(v.id.key);
    ChangeGroup& group = groups[{kind, op, v.id.variant, split}];
    if (group.rows.empty()) {
      group.kind = kind;
      group.op = op;
      group.variant = v.id.variant;
      group.before = infos[moved ? split - 1 : 0];
      group.after = infos[split];
      if (moved && row[split - 1] && row[split])
        group.code = code_between(row[split - 1]->code, row[split]->code);
    }
    group.rows.push_back({v.id, change->by, change->why});
  }
  for (auto& [key, group] : groups) {
    double sum = 0;
    for (const ChangedRow& row : group.rows) sum += std::log1p(row.change);
    group.change = std::expm1(sum / static_cast<double>(group.rows.size()));
    std::ranges::stable_sort(group.rows, std::greater(),
                             [](const ChangedRow& row) { return std::abs(row.change); });
    add_trend(group, run_rows);
    changed.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(changed.groups, {}, [](const ChangeGroup& g) {
    return std::pair(g.kind, -std::abs(g.change) * static_cast<double>(g.rows.size()));
  });
  return changed;
}

std::string web_address(const std::string& remote) {
  std::string address = remote;
  re2::RE2::Replace(&address, "^ssh://", "");
  if (!address.starts_with("http") && re2::RE2::Replace(&address, "^[^@]*@", "https://"))
    re2::RE2::Replace(&address, "^(https://[^:]*):", R"(\1/)");
  re2::RE2::Replace(&address, R"(\.git$)", "");
  return address.starts_with("https://") || address.starts_with("http://") ? address : "";
}

// As a page and as a table.

Line what_changed_line(const WhatChanged& changed) {
  std::map<ChangeKind, size_t> counts;
  for (const ChangeGroup& g : changed.groups) counts[g.kind] += g.rows.size();
  std::string text;
  for (const auto& [kind, n] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name_of(kind));
  const bool told = changed.inconclusive < changed.rows;
  Line line = {bold(!text.empty() ? text : told ? "Nothing changed" : "Nothing could be told")};
  const auto when = [](const RunInfo& run) {
    return fmt::format(" ({}, {})", run.started.substr(0, 10), short_measured_commit(run));
  };
  line.push_back(
      plain(fmt::format(" of {}, {} inconclusive, from {}{} to ", count_of(changed.rows, "row"),
                        changed.inconclusive, describe(changed.base), when(changed.base))));
  line.push_back(linked(describe(changed.head), fmt::format("night={}", changed.head.id)));
  line.push_back(plain(when(changed.head)));
  return line;
}

Table groups_table(const WhatChanged& changed) {
  Table table{{"what", "change", "rows", "operator", "variant", "since", "run", "commits", "code",
               "trend"}};
  constexpr double kLeastSpan = 0.05;
  for (const ChangeGroup& g : changed.groups) {
    table.add(name_of(g.kind), Table::Cell{change_of(g), true}, g.rows.size(), g.op, g.variant,
              g.after.started.substr(0, 10), g.after.id, commits_of(g), g.code,
              g.trend.size() < 2 ? "" : sparkline(g.trend, kLeastSpan));
  }
  return table;
}

Page what_changed_page(const WhatChanged& changed, const std::string& address) {
  Page page;
  page.add(0, Paragraph{{what_changed_line(changed)}});
  if (changed.groups.empty()) return page;
  page.add(0, Rows{groups_table(changed)});
  for (const ChangeGroup& g : changed.groups) {
    List list;
    for (const ChangedRow& row : g.rows) {
      const bool moved = row.change != 0;
      list.items.push_back(
          {code(row.id.key), plain(moved ? " " + percent(row.change) : ""), plain(": " + row.why)});
    }
    Line title = {bold(fmt::format("{} {}: {}{} ({})", g.op, g.variant, name_of(g.kind),
                                   change_of(g).empty() ? "" : " " + change_of(g), commits_of(g)))};
    if (const std::string link = link_of(g, address); !link.empty())
      title.push_back(plain(" " + link));
    page.sections.push_back({1, {Paragraph{{title}}, std::move(list)}, "rows of a change"});
  }
  return page;
}

Table what_changed_table(const WhatChanged& changed) {
  Table table{{"what", "suite", "case", "variant", "change", "run_before", "run", "commit_before",
               "commit", "code", "why"}};
  for (const ChangeGroup& g : changed.groups) {
    for (const ChangedRow& row : g.rows) {
      const Table::Cell change{row.change == 0 ? "" : fmt::format("{:.4f}", row.change), true};
      table.add(name_of(g.kind), row.id.suite, row.id.key, row.id.variant, change, g.before.id,
                g.after.id, measured_commit(g.before), measured_commit(g.after), g.code, row.why);
    }
  }
  return table;
}

}  // namespace moegate
