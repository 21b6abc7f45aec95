// SPDX-License-Identifier: Apache-2.0
// A verdict's rows in the store, beside the run that was judged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/report/gate_report.h"

namespace moegate {
namespace {

constexpr const char* kSaid =
    "outcome, stage, base, head, effect, low, high, df, p, p_adjusted, mde, blind, family, waiver, "
    "why, cause";

/// Calls `add` with what a row says: a value for each column of kSaid. NaN is stored as NULL.
template <class Add>
void for_each_said(const CaseVerdict& v, int family, const Add& add) {
  const bool judged = v.latency.has_value();
  static const Judgement kNone;
  const Judgement& l = judged ? *v.latency : kNone;
  const auto where = [](bool known, double value) { return known ? value : std::nan(""); };
  add(std::string_view(name_of(v.outcome)));
  add(v.stage);
  add(where(v.base > 0, v.base));
  add(where(v.head > 0, v.head));
  for (const double value : {l.effect, l.low, l.high}) add(where(judged, value));
  add(where(judged && l.df > 0, l.df));
  for (const double value : {l.p, l.p_adjusted}) add(where(judged, value));
  add(where(judged && l.mde > 0, l.mde));
  add(static_cast<int>(l.blind));
  add(family);
  add(std::string_view(v.waiver));
  add(std::string_view(v.why));
  const std::string cause = cause_of(v);
  add(std::string_view(cause));
}

bool holds(const Statement& q, int column, double value) {
  return std::isfinite(value) ? !q.is_null(column) && q.real(column) == value : q.is_null(column);
}
bool holds(const Statement& q, int column, int value) {
  return q.integer(column) == value;
}
bool holds(const Statement& q, int column, std::string_view value) {
  return q.view(column) == value;
}

/// A row of a verdict, and whether the store has it as it is.
struct VerdictRow {
  const CaseVerdict* verdict;
  bool stored = false;
};

/// In the order of the table's key, so that they are compared and added in one sweep.
std::vector<VerdictRow> in_order_of_key(const GateResult& result) {
  std::vector<VerdictRow> rows;
  for (const CaseVerdict& v : result.cases) rows.push_back({&v});
  std::ranges::sort(rows, {}, [](const VerdictRow& row) {
    const CaseVerdict& v = *row.verdict;
    return std::tie(v.against, v.id.suite, v.id.key, v.id.variant);
  });
  return rows;
}

/// Marks the rows against `against` that the store has as they are. False: it has others, too, that are none of
/// this verdict's.
bool find_stored(Database& db, int64_t run, const std::string& against, int family,
                 std::vector<VerdictRow>& rows) {
  constexpr int kNames = 3;
  Statement q(db, fmt::format("SELECT suite, key, variant, {} FROM verdict WHERE run_id = ?1 AND "
                              "against = ?2 ORDER BY suite, key, variant",
                              kSaid));
  q.bind(run, against);
  const auto name_of_row = [](const VerdictRow& row) {
    const CaseVerdict& v = *row.verdict;
    return std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>(
        v.against, v.id.suite, v.id.key, v.id.variant);
  };
  bool others = false;
  auto row = rows.begin();
  while (q.step()) {
    const std::tuple name(std::string_view(against), q.view(0), q.view(1), q.view(2));
    while (row != rows.end() && name_of_row(*row) < name) ++row;
    if (row == rows.end() || name_of_row(*row) != name) {
      others = true;
      continue;
    }
    int column = kNames;
    row->stored = true;
    for_each_said(*row->verdict, family, [&](const auto& value) {
      row->stored = row->stored && holds(q, column, value);
      ++column;
    });
  }
  return !others;
}

void put_verdicts(Database& db, int64_t run, int family, const std::vector<VerdictRow>& rows) {
  Statement insert(
      db, fmt::format("INSERT OR REPLACE INTO verdict (run_id, against, suite, key, variant, {}) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
                      "?16, ?17, ?18, ?19, ?20, ?21)",
                      kSaid));
  for (const auto& [verdict, stored] : rows) {
    if (stored) continue;
    const CaseVerdict& v = *verdict;
    insert.bind(run, v.against, v.id.suite, v.id.key, v.id.variant);
    int place = 5;
    for_each_said(v, family, [&](const auto& value) { insert.bind_at(++place, value); });
    insert.run();
  }
}

}  // namespace

void store_verdicts(Store& store, int64_t run, const GateResult& result) {
  Database& db = store.database();
  Transaction transaction(db);
  std::vector<VerdictRow> rows = in_order_of_key(result);
  std::set<std::string> judged_against;
  for (const auto& [suite, e] : result.suites) judged_against.insert(e.against);
  bool only_ours = true;
  for (const std::string& against : judged_against) {
    only_ours = find_stored(db, run, against, result.judged, rows) && only_ours;
  }
  if (!only_ours) {
    Statement remove(db, "DELETE FROM verdict WHERE run_id = ?1 AND against = ?2");
    for (const std::string& against : judged_against) remove.bind(run, against).run();
    for (VerdictRow& row : rows) row.stored = false;
  }
  put_verdicts(db, run, result.judged, rows);
  transaction.commit();
}

}  // namespace moegate
