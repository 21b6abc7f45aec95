// SPDX-License-Identifier: Apache-2.0
#include "harness/report/site_data.h"

#include <algorithm>
#include <tuple>

#include "harness/base/natural_less.h"
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

/// Reads what collect() needs of a run's results, and no more: the pages of a year have millions.
class LevelReader {
 public:
  explicit LevelReader(Store& store)
      : q_(store.database(),
           "SELECT key, op, section, round, r.variant, r.status, judged, span_ns, ratio, samples, "
           "invalid, flags, timer, code FROM process JOIN result r USING (process_id) "
           "JOIN bench_case USING (case_id) LEFT JOIN run_case rc USING (run_id, case_id) "
           "WHERE run_id = ?1 ORDER BY case_id, r.variant, round") {}

  /// Calls `add` with the levels of each row.
  template <class Add>
  void read(int64_t run, const Add& add) {
    q_.bind(run);
    std::vector<Level> row;
    while (q_.step()) {
      Level level = next();
      const bool same = !row.empty() && row[0].variant == level.variant && row[0].key == level.key;
      if (!row.empty() && !same) {
        add(row);
        row.clear();
      }
      row.push_back(std::move(level));
    }
    if (!row.empty()) add(row);
    q_.run();  // ready for the next run
  }

 private:
  enum Column {
    key,
    op,
    section,
    round,
    variant,
    status,
    judged,
    span,
    ratio,
    samples,
    invalid,
    flags,
    timer,
    code
  };

  template <class E>
  void parse(Column column, E& value) {
    try {
      parse_name(q_.text(column), value);
    } catch (const std::invalid_argument& e) {
      q_.database().damaged(e.what());
    }
  }
  Level next() {
    Level level{.key = q_.text(key),
                .op = q_.text(op),
                .section = q_.text(section),
                .variant = q_.text(variant),
                .round = static_cast<int>(q_.integer(round))};
    Result& r = level.result;
    r.variant = level.variant;
    parse(status, r.status);
    parse(judged, r.judged);
    r.span_ns = q_.real(span);
    r.ratio = q_.real(ratio);
    r.samples = static_cast<int>(q_.integer(samples));
    r.invalid = static_cast<int>(q_.integer(invalid));
    r.flags = static_cast<uint32_t>(q_.integer(flags));
    r.timer = q_.text(timer);
    r.code = q_.text(code);
    return level;
  }

  Statement q_;
};

class Reader {
 public:
  explicit Reader(SiteData& data) : data_(data) {}

  void add(const std::vector<Level>& levels) {
    const Level& first = levels[0];
    const Side side = collect(levels).begin()->second;
    const std::string name = first.key + '\n' + first.variant;
    const auto [at, fresh] = rows_.try_emplace(name, data_.rows.size());
    if (fresh) data_.rows.push_back({first.key, first.op, first.section, first.variant, {}});
    SitePoint point{.run = static_cast<uint32_t>(data_.runs.size() - 1),
                    .processes = static_cast<uint16_t>(side.level.n),
                    .status = side.status};
    point.level = side.measured() && !side.disturbed && side.judged != Judged::is_yardstick;
    point.mean_log = static_cast<float>(side.level.mean_log);
    point.sd_log = static_cast<float>(side.level.sd_log);
    if (!side.code.empty()) {
      const auto next = static_cast<uint32_t>(codes_.size() + 1);
      point.code = codes_.try_emplace(side.code, next).first->second;
    }
    data_.rows[at->second].points.push_back(point);
  }

  int conditions_of(const SiteRun& run) {
    const RunInfo& info = run.info;
    const Conditions conditions = {info.device.klass, run.host() ? "" : uuids_of(info), info.timer,
                                   info.flush, info.protocol};
    return conditions_.try_emplace(conditions, static_cast<int>(conditions_.size())).first->second;
  }

 private:
  SiteData& data_;
  std::map<std::string, size_t> rows_;
  std::map<std::string, uint32_t> codes_;
  std::map<Conditions, int> conditions_;
};

}  // namespace

SiteData read_site(Store& store, const std::string& since) {
  SiteData data;
  Reader reader(data);
  LevelReader levels(store);
  for (const int64_t id : run_ids(store, since)) {
    SiteRun& run = data.runs.emplace_back();
    run.info = store.run_info(id);
    run.ab = run.info.tags.count("ab") > 0;
    run.conditions = reader.conditions_of(run);
    count_outcomes(store, run);
    if (!run.ab) levels.read(id, [&](const std::vector<Level>& row) { reader.add(row); });
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
