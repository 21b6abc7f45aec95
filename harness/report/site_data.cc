// SPDX-License-Identifier: Apache-2.0
#include "harness/report/site_data.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "harness/base/natural_less.h"
#include "harness/store/row_levels.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

std::vector<int64_t> run_ids(Store& store, const std::string& since) {
  Statement q(
      store.database(),
      "SELECT run_id FROM run WHERE status = 'complete' AND task = 'measure' AND started >= "
      "?1 ORDER BY run_id");
  q.bind(since);
  std::vector<int64_t> ids;
  while (q.step()) ids.push_back(q.integer(0));
  return ids;
}

void count_outcomes(Store& store, SiteRun& run) {
  Statement q(store.database(),
              "SELECT outcome, count(*) AS n, sum(blind) AS blind FROM verdict WHERE run_id = ?1 "
              "GROUP BY outcome");
  q.bind(run.info.id);
  const Columns columns(q);
  while (q.step()) {
    run.outcomes[columns.text("outcome")] = static_cast<int>(columns.integer("n"));
    run.blind += static_cast<int>(columns.integer("blind"));
  }
}

using Conditions = std::tuple<std::string, std::string, std::string, std::string, int>;

/// Of a run whose levels nobody wrote down: reads what collect() needs of its results, and no more.
class LevelReader {
 public:
  explicit LevelReader(Store& store)
      : q_(store.database(),
           "SELECT case_id, key, round, r.variant, r.status, judged, span_ns, ratio, samples, "
           "invalid, flags, timer, code FROM process CROSS JOIN result r USING (process_id) "
           "CROSS JOIN bench_case USING (case_id) "
           "WHERE run_id = ?1 ORDER BY case_id, r.variant, round") {}

  /// Calls `add` with each row.
  template <class Add>
  void read(int64_t run, const Add& add) {
    q_.bind(run);
    std::vector<Level> row;
    int64_t case_id = 0;
    while (q_.step()) {
      Level level = next();
      const bool same = !row.empty() && case_id == q_.integer(0) && row[0].variant == level.variant;
      if (!row.empty() && !same) {
        add(in_short(case_id, row));
        row.clear();
      }
      case_id = q_.integer(0);
      row.push_back(std::move(level));
    }
    if (!row.empty()) add(in_short(case_id, row));
    q_.reset();  // ready for the next run
  }

 private:
  Level next() const {
    Level level;
    Result& r = level.result;
    int column = 1;
    const auto get = [&](auto& value) { read_column(q_, column++, value); };
    get(level.key), get(level.round), get(r.variant), get(r.status), get(r.judged);
    get(r.span_ns), get(r.ratio), get(r.samples), get(r.invalid), get(r.flags);
    get(r.timer), get(r.code);
    level.variant = r.variant;
    return level;
  }
  static RowLevel in_short(int64_t case_id, const std::vector<Level>& levels) {
    const Sides sides = collect(levels);
    const auto& [id, side] = *sides.begin();
    return {case_id,           id.key,       id.variant,          side.status,
            side.judged,       side.level.n, side.level.mean_log, side.level.sd_log,
            side.comparable(), side.code};
  }

  Statement q_;
};

/// What a site says of a case: key, operator, and its section in the first run that has it.
class CasesOfRuns {
 public:
  explicit CasesOfRuns(Store& store)
      : q_(store.database(),
           "SELECT key, op, ifnull((SELECT section FROM run_case WHERE run_case.case_id = ?1 AND "
           "run_id = ?2), '') FROM bench_case WHERE case_id = ?1") {}
  void begin(int64_t run) { run_ = run; }
  SiteRow operator()(int64_t case_id, const std::string& variant) {
    q_.bind(case_id, run_);
    SiteRow row;
    if (q_.step()) row = {q_.text(0), q_.text(1), q_.text(2), variant, {}};
    q_.reset();
    return row;
  }

 private:
  Statement q_;
  int64_t run_ = 0;
};

class Reader {
 public:
  Reader(Store& store, SiteData& data) : data_(data), cases_(store) {}

  void begin(int64_t run) { cases_.begin(run); }

  void add(const RowLevel& level) {
    SitePoint point{.run = static_cast<uint32_t>(data_.runs.size() - 1),
                    .processes = static_cast<uint16_t>(level.processes),
                    .status = level.status};
    point.level = level.comparable;
    point.mean_log = static_cast<float>(level.mean_log);
    point.sd_log = static_cast<float>(level.sd_log);
    if (!level.code.empty()) {
      const auto next = static_cast<uint32_t>(codes_.size() + 1);
      point.code = codes_.try_emplace(level.code, next).first->second;
    }
    row_of(level).points.push_back(point);
  }

  int conditions_of(const SiteRun& run) {
    const RunInfo& info = run.info;
    const Conditions conditions = {info.device.klass, run.host() ? "" : uuids_of(info), info.timer,
                                   info.flush, info.protocol};
    return conditions_.try_emplace(conditions, static_cast<int>(conditions_.size())).first->second;
  }

 private:
  SiteRow& row_of(const RowLevel& level) {
    std::vector<size_t>& rows = rows_[level.case_id];
    for (const size_t at : rows) {
      if (data_.rows[at].variant == level.variant) return data_.rows[at];
    }
    rows.push_back(data_.rows.size());
    return data_.rows.emplace_back(cases_(level.case_id, level.variant));
  }

  SiteData& data_;
  CasesOfRuns cases_;
  std::unordered_map<int64_t, std::vector<size_t>> rows_;  // of a case
  std::map<std::string, uint32_t> codes_;
  std::map<Conditions, int> conditions_;
};

}  // namespace

SiteData read_site(Store& store, const std::string& since) {
  SiteData data;
  Reader reader(store, data);
  LevelReader levels(store);
  for (const int64_t id : run_ids(store, since)) {
    SiteRun& run = data.runs.emplace_back();
    run.info = store.run_info(id);
    run.ab = run.info.tags.count("ab") > 0;
    run.conditions = reader.conditions_of(run);
    count_outcomes(store, run);
    if (run.ab) continue;
    reader.begin(id);
    const auto add = [&](const RowLevel& row) { reader.add(row); };
    if (!read_row_levels(store, id, add)) levels.read(id, add);
  }
  std::sort(data.rows.begin(), data.rows.end(), [](const SiteRow& a, const SiteRow& b) {
    return NaturalLess()(std::pair{a.key, a.variant}, std::pair{b.key, b.variant});
  });
  return data;
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

}  // namespace moegate
