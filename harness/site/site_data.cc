// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "harness/judge/step_class.h"
#include "harness/judge/steps.h"
#include "harness/judge/verdict.h"
#include "harness/report/history.h"
#include "harness/store/level_walk.h"
#include "harness/store/query_report.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

void count_outcomes(Store& store, SiteRun& run) {
  Statement q(store.database(),
              "SELECT outcome, count(*), sum(blind) FROM own_verdict WHERE run_id = ?1 "
              "GROUP BY outcome");
  q.bind(run.info.id);
  while (q.step()) {
    run.outcomes[q.text(0)] = static_cast<int>(q.integer(1));
    run.blind += static_cast<int>(q.integer(2));
  }
}

using Conditions = std::tuple<std::string, std::string, std::string, std::string, int>;

/// Key and operator of each case of a store.
using CaseNames = std::unordered_map<int64_t, std::pair<std::string, std::string>>;

CaseNames read_case_names(Store& store) {
  CaseNames names;
  Statement q(store.database(), "SELECT case_id, key, op FROM bench_case");
  while (q.step()) names[q.integer(0)] = {q.text(1), q.text(2)};
  return names;
}

class Reader {
 public:
  /// `runs`: how many there will be.
  Reader(Store& store, SiteData& data, size_t runs)
      : data_(data), cases_(read_case_names(store)), runs_(runs) {}

  void begin_run() { next_ = 0; }

  void add(const RowLevel& level) {
    SitePoint point{.run = static_cast<uint32_t>(data_.runs.size() - 1),
                    .processes = static_cast<uint16_t>(level.processes)};
    point.level = level.comparable;
    point.mean_log = static_cast<float>(level.mean_log);
    point.sd_log = static_cast<float>(level.sd_log);
    SiteRow& row = row_of(level);
    point.code = number_of(level.code, row);
    row.points.push_back(point);
  }

  int conditions_of(const SiteRun& run) {
    const RunInfo& info = run.info;
    const Conditions conditions = {info.device.klass, run.host() ? "" : uuids_of(info), info.timer,
                                   info.flush, info.protocol};
    return conditions_.try_emplace(conditions, static_cast<int>(conditions_.size())).first->second;
  }

 private:
  /// A run has its rows in the order of the run before, as a rule.
  SiteRow& row_of(const RowLevel& level) {
    const bool is_next = next_ < data_.rows.size() && data_.rows[next_].case_id == level.case_id &&
                         data_.rows[next_].variant == level.variant;
    if (is_next) return data_.rows[next_++];
    const auto [at, fresh] =
        rows_.try_emplace(std::pair(level.case_id, level.variant), data_.rows.size());
    next_ = at->second + 1;
    if (!fresh) return data_.rows[at->second];
    const auto& [key, op] = cases_[level.case_id];
    SiteRow& row = data_.rows.emplace_back(SiteRow{level.case_id, key, op, level.variant, {}, {}});
    row.points.reserve(runs_ - data_.runs.size() + 1);  // it grows no more
    return row;
  }
  /// Of a code; 0: unknown. Most is that of the row's point before.
  uint32_t number_of(const std::string& code, const SiteRow& row) {
    if (code.empty()) return 0;
    const uint32_t before = row.points.empty() ? 0 : row.points.back().code;
    if (before != 0 && *codes_by_number_[before - 1] == code) return before;
    const auto [at, fresh] =
        codes_.try_emplace(code, static_cast<uint32_t>(codes_by_number_.size() + 1));
    if (fresh) codes_by_number_.push_back(&at->first);
    return at->second;
  }

  SiteData& data_;
  CaseNames cases_;
  std::map<std::pair<int64_t, std::string>, size_t> rows_;  // by case and variant
  std::unordered_map<std::string, uint32_t> codes_;
  std::vector<const std::string*> codes_by_number_;  // keys of codes_
  std::map<Conditions, int> conditions_;
  size_t runs_;
  size_t next_ = 0;  // row that is expected
};

using RowName = std::pair<std::string, std::string>;  // key, variant

/// Of each run the rows that it was the newest to judge, on devices of its conditions.
std::map<uint32_t, std::map<RowName, SiteRow*>> newest_judged(SiteData& data) {
  std::map<uint32_t, std::map<RowName, SiteRow*>> rows_of;
  for (SiteRow& row : data.rows) {
    std::map<int, uint32_t> newest;  // by conditions
    for (const SitePoint& p : row.points) {
      if (data.runs[p.run].judged()) newest[data.runs[p.run].conditions] = p.run;
    }
    for (const auto& [conditions, run] : newest) rows_of[run][{row.key, row.variant}] = &row;
  }
  return rows_of;
}

void read_bases(Store& store, SiteData& data) {
  Statement q(store.database(),
              "SELECT key, variant, base FROM own_verdict WHERE run_id = ?1 AND base > 0");
  for (const auto& [run, rows] : newest_judged(data)) {
    q.bind(data.runs[run].info.id);
    while (q.step()) {
      const auto row = rows.find({q.text(0), q.text(1)});
      if (row != rows.end()) row->second->bases[data.runs[run].conditions] = q.real(2);
    }
    q.reset();
  }
}

/// No split of a series has means further apart than this many standard errors: it has no step. Of
/// a hundred series without one, about three are searched for nothing.
constexpr double kClearSplit = 3;

size_t first_searched(const Points& points) {
  return points.size() - std::min(points.size(), kSearched);
}

std::vector<double> newest_logs(const Points& points) {
  std::vector<double> logs;
  for (size_t i = first_searched(points); i < points.size(); ++i)
    logs.push_back(points[i]->mean_log);
  return logs;
}

/// The distance of the means that the clearest split has, squared, in standard errors.
double clearest_split(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double all = std::accumulate(values.begin(), values.end(), 0.0);
  double squares = 0, left = 0, clearest = 0;
  for (const double x : values) squares += (x - all / n) * (x - all / n);
  for (size_t i = 1; i < values.size(); ++i) {
    left += values[i - 1];
    const auto k = static_cast<double>(i);
    const double gap = left / k - (all - left) / (n - k);
    const double between = gap * gap * k * (n - k) / n;  // of the sum of squares
    const double within = (squares - between) / std::max(1.0, n - 2);
    if (within > 0) clearest = std::max(clearest, between / within);
    if (within <= 0 && between > 0) clearest = std::numeric_limits<double>::infinity();
  }
  return clearest;
}

}  // namespace

SiteData read_site(Store& store, const std::string& since) {
  add_sql_functions(store.database());
  SiteData data;
  const auto ids = values_of<int64_t>(store.database(),
                                      "SELECT run_id FROM run WHERE status = 'complete' AND task = "
                                      "'measure' AND started >= ?1 ORDER BY run_id",
                                      since);
  Reader reader(store, data, ids.size());
  for (const int64_t id : ids) {
    SiteRun& run = data.runs.emplace_back();
    run.info = store.run_info(id);
    run.ab = run.info.tags.count("ab") > 0;
    run.conditions = reader.conditions_of(run);
    count_outcomes(store, run);
    if (run.ab) continue;
    reader.begin_run();
    each_row_level(store, id, [&](const RowLevel& row) { reader.add(row); });
  }
  read_bases(store, data);
  return data;
}

double half_interval(const SitePoint& point) {
  constexpr double kTail = 0.025;
  static Quantiles quantiles;
  if (point.processes < 2) return NAN;
  return point.sd_log / std::sqrt(point.processes) * quantiles.student(point.processes - 1, kTail);
}

std::vector<size_t> newest_runs(const SiteData& data) {
  std::map<std::string, size_t> newest;
  const auto better = [&](size_t i, size_t than) {
    const SiteRun &a = data.runs[i], &b = data.runs[than];
    return std::tuple(!a.ab, a.judged(), a.info.id) > std::tuple(!b.ab, b.judged(), b.info.id);
  };
  for (size_t i = 0; i < data.runs.size(); ++i) {
    const auto [at, fresh] = newest.try_emplace(data.runs[i].info.device.klass, i);
    if (!fresh && better(i, at->second)) at->second = i;
  }
  std::vector<size_t> runs;
  for (const auto& [klass, i] : newest) runs.push_back(i);
  std::sort(runs.begin(), runs.end(), std::greater<>());
  return runs;
}

std::map<int, Points> histories_of(const SiteData& data, const SiteRow& row) {
  std::map<int, Points> histories;
  for (const SitePoint& p : row.points) {
    if (p.level) histories[data.runs[p.run].conditions].push_back(&p);
  }
  return histories;
}

std::map<size_t, double> steps_of(const Points& points, bool searched) {
  const size_t first = first_searched(points);
  const std::vector<double> logs = newest_logs(points);
  std::vector<size_t> code_changes;
  for (size_t i = first + 1; i < points.size(); ++i) {
    const bool known = points[i]->code != 0 && points[i - 1]->code != 0;
    if (known && points[i]->code != points[i - 1]->code) code_changes.push_back(i - first);
  }
  std::map<size_t, double> steps;
  for (const ChangePoint& change :
       searched ? steps_in(logs, code_changes) : steps_of_code(logs, code_changes)) {
    steps[first + change.at] = std::expm1(change.after - change.before);
  }
  return steps;
}

namespace {

const SitePoint* point_of(const SiteRow& row, uint32_t run) {
  const auto at = std::ranges::lower_bound(row.points, run, {}, &SitePoint::run);
  return at != row.points.end() && at->run == run && at->level ? &*at : nullptr;
}

BetweenRuns read_between(Store& store, const SiteData& data, uint32_t before, uint32_t after) {
  BetweenRuns between;
  for (const SiteRow& row : data.rows) {
    const SitePoint *from = point_of(row, before), *to = point_of(row, after);
    if (!from || !to || from->code == 0 || from->code != to->code) continue;
    between.alike.push_back(double{to->mean_log} - double{from->mean_log});
  }
  const auto base = store.environment(data.runs[before].info.id);
  const auto head = store.environment(data.runs[after].info.id);
  if (!base.empty() && !head.empty()) between.environment = changes_between(base, head);
  return between;
}

StepPoint recorded(const SiteData& data, const SitePoint& point) {
  const RunInfo& run = data.runs[point.run].info;
  StepPoint step;
  if (point.code != 0) step.code = std::to_string(point.code);
  step.commit = measured_commit(run);
  if (const auto sets = run.tags.find(kSetsTag); sets != run.tags.end()) step.sets = sets->second;
  return step;
}

}  // namespace

std::set<size_t> steps_of_environment(Store& store, const SiteData& data, const Points& points,
                                      const std::map<size_t, double>& steps, RunPairs& pairs) {
  std::set<size_t> found;
  for (const auto& [at, change] : steps) {
    StepQuestion question{recorded(data, *points[at - 1]), recorded(data, *points[at]),
                          std::log1p(change)};
    if (question.before.code == question.after.code) continue;
    if (question.before.commit != question.after.commit) continue;  // nothing more need be read
    const std::pair runs(points[at - 1]->run, points[at]->run);
    const auto [pair, first] = pairs.try_emplace(runs);
    if (first) pair->second = read_between(store, data, runs.first, runs.second);
    question.alike = pair->second.alike;
    question.environment = pair->second.environment;
    if (classify_step(question).kind == StepClass::environment) found.insert(at);
  }
  return found;
}

StepSearch plan_search(const SiteData& data, size_t work) {
  struct Candidate {
    double split;
    size_t row;
    int conditions;
    size_t cost;
  };
  std::vector<Candidate> candidates;
  for (size_t row = 0; row < data.rows.size(); ++row) {
    for (const auto& [conditions, points] : histories_of(data, data.rows[row])) {
      const std::vector<double> logs = newest_logs(points);
      const double split = clearest_split(logs);
      if (split > kClearSplit * kClearSplit)
        candidates.push_back({split, row, conditions, logs.size() * logs.size()});
    }
  }
  std::ranges::sort(candidates, {},
                    [](const Candidate& c) { return std::tuple(-c.split, c.row, c.conditions); });
  StepSearch search;
  auto next = candidates.begin();
  for (; next != candidates.end() && next->cost <= work; ++next) {
    work -= next->cost;
    search.searched.emplace(next->row, next->conditions);
  }
  for (; next != candidates.end(); ++next) search.left_out.emplace(next->row, next->conditions);
  return search;
}

}  // namespace moegate
