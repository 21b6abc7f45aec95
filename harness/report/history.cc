// SPDX-License-Identifier: Apache-2.0
#include "harness/report/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "harness/base/notes.h"
#include "harness/base/stats.h"
#include "harness/base/text.h"
#include "harness/judge/gate.h"
#include "harness/judge/steps.h"
#include "harness/report/page.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

struct Name {
  int64_t case_id;
  std::string key, variant;
};

std::string list_some(const std::vector<std::string>& names) {
  constexpr size_t kSome = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kSome); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kSome) text += fmt::format(" and {} more", names.size() - kSome);
  return text.empty() ? "nothing" : text;
}

std::vector<Name> find_names(Store& store, const HistoryQuery& query) {
  const Pattern cases = compile_pattern("--filter", query.case_pattern);
  const Pattern variants = compile_pattern("--variant", query.variant_pattern);
  std::vector<Name> all, names;
  Statement q(store.database(), "SELECT case_id, key FROM bench_case");
  while (q.step()) all.push_back({q.integer(0), q.text(1), ""});
  std::ranges::sort(all, NaturalLess(), &Name::key);
  // Each variant is a step in the index, however many results there are.
  Statement steps(store.database(),
                  "WITH RECURSIVE v(name) AS (SELECT min(variant) FROM result WHERE case_id = ?1 "
                  "UNION ALL SELECT (SELECT min(variant) FROM result WHERE case_id = ?1 AND "
                  "variant > name) FROM v WHERE name IS NOT NULL) "
                  "SELECT name FROM v WHERE name IS NOT NULL");
  const auto variants_of = [&](int64_t case_id) {
    std::vector<std::string> found;
    steps.bind(case_id);
    while (steps.step()) found.push_back(steps.text(0));
    steps.reset();
    return found;
  };
  size_t matched = 0;
  for (const Name& c : all) {
    if (!cases.found_in(c.key)) continue;
    for (const std::string& variant : variants_of(c.case_id)) {
      if (!variants.found_in(variant)) continue;
      if (matched++ < query.most) names.push_back({c.case_id, c.key, variant});
    }
  }
  if (matched > names.size()) {
    say("{} rows match; these are the first {}: narrow --filter or --variant\n", matched,
        names.size());
  }
  if (!names.empty()) return names;
  std::vector<std::string> there;
  for (const Name& c : all) {
    for (const std::string& variant : variants_of(c.case_id))
      there.push_back(c.key + " " + variant);
  }
  std::sort(there.begin(), there.end(), NaturalLess());
  give_up(Exit::coverage, "{}: nothing matches {}; there is: {}", store.database().path(),
          flags_text({{"filter", query.case_pattern}, {"variant", query.variant_pattern}}),
          list_some(there));
}

struct RunLevels {
  std::vector<Level> levels;
  std::string facts;  // of the case's data
  int gpu = -1;       // kGpuMetric
};
std::map<int64_t, RunLevels> read_levels(Store& store, const Name& name) {
  Statement q(
      store.database(),
      fmt::format("SELECT run_id, round, suite, facts, ifnull((SELECT m.value FROM metric m WHERE "
                  "m.result_id = r.result_id AND ordinal = -1 AND m.name = ?3), -1) AS "
                  "which_gpu, {} "
                  "FROM result r JOIN process USING (process_id) "
                  "JOIN run USING (run_id) JOIN run_case USING (run_id, case_id) "
                  "WHERE case_id = ?1 AND variant = ?2 AND run.task = 'measure' "
                  "AND run.status = 'complete' "
                  "AND {} ORDER BY run_id, round, result_id",
                  columns_of<Result>("r"), kOfItsOwn));
  q.bind(name.case_id, name.variant, kGpuMetric);
  const RowReader<Result> result(q);
  std::map<int64_t, RunLevels> runs;
  while (q.step()) {
    RunLevels& run = runs[q.integer(0)];
    run.facts = q.text(3);
    run.gpu = static_cast<int>(q.real(4));
    run.levels.push_back({.key = name.key,
                          .suite = q.text(2),
                          .variant = name.variant,
                          .round = static_cast<int>(q.integer(1)),
                          .result = result.read()});
  }
  return runs;
}

/// What must be equal for two points to compare.
using Conditions = std::tuple<std::string, std::string, std::string, std::string, int>;

StepPoint recorded(const RunInfo& run, const RunLevels& row, const Side& side) {
  const auto sets = run.tags.find(kSetsTag);
  std::vector<double> clocks;
  for (const Level& level : row.levels) {
    if (level.result.sm_mhz > 0) clocks.push_back(level.result.sm_mhz);
  }
  return {.code = side.code,
          .commit = measured_commit(run),
          .suite = row.levels.front().suite,
          .facts = row.facts == "{}" ? "" : row.facts,
          .sets = sets == run.tags.end() ? "" : sets->second,
          .yardstick = side.yardstick,
          .device = uuid_of(run, row.gpu),
          .driver = run.device.driver,
          .sm_mhz = clocks.empty() ? 0 : median(clocks)};
}

/// Adds the series of one case and variant; `runs` remembers what was read of each run.
void add_series(Store& store, const Name& name, const std::string& klass,
                std::map<int64_t, RunInfo>& runs, std::vector<HistorySeries>& all) {
  std::map<Conditions, HistorySeries> found;
  for (const auto& [id, found_levels] : read_levels(store, name)) {
    const std::vector<Level>& levels = found_levels.levels;
    if (runs.count(id) == 0) runs[id] = store.run_info(id);
    const RunInfo& run = runs[id];
    const bool host = run.device.backend == Backend::host;
    if (!klass.empty() && run.device.klass != klass) continue;
    const Sides sides = collect(levels);
    const Side& side = sides.begin()->second;
    if (!side.measured() || side.judged == Judged::is_yardstick) continue;
    const std::string measured_on = uuid_of(run, found_levels.gpu);
    const std::string uuid = host ? "" : measured_on;
    HistorySeries& series = found[{run.device.klass, uuid, side.timer, run.flush, run.protocol}];
    if (series.key.empty()) {
      series = {name.key,  name.variant, run.device.klass,   uuid, side.timer,
                run.flush, run.protocol, run.device.backend, {},   {}};
    }
    auto& points = side.comparable() ? series.points : series.noisy;
    points.push_back({id, run.started, run.label, measured_on, short_measured_commit(run),
                      side.level, side.code, recorded(run, found_levels, side)});
  }
  for (auto& [conditions, series] : found) all.push_back(std::move(series));
}

std::vector<size_t> code_changes(const std::vector<HistoryPoint>& points) {
  std::vector<size_t> changes;
  for (size_t i = 1; i < points.size(); ++i) {
    const bool known = !points[i].code.empty() && !points[i - 1].code.empty();
    if (known && points[i].code != points[i - 1].code) changes.push_back(i);
  }
  return changes;
}

void keep_newest(HistorySeries& series, size_t last) {
  const std::vector<HistoryPoint> all = all_points(series);
  if (last == 0 || all.size() <= last) return;
  const auto is_old = [from = all[all.size() - last].run](const auto& p) { return p.run < from; };
  std::erase_if(series.points, is_old);
  std::erase_if(series.noisy, is_old);
}

/// Changes, as logarithms, of rows of both runs but `but` and those whose code may be another.
std::vector<double> changes_of_unchanged(const RunRows& before, const RunRows& after,
                                         const HistorySeries& but) {
  const std::string itself = row_name(but.key, but.variant);
  std::vector<double> changes;
  for (const auto& [name, head] : after) {
    const auto base = before.find(name);
    if (name == itself || base == before.end() || head.judged != base->second.judged) continue;
    if (head.code.empty() || head.code != base->second.code) continue;
    changes.push_back(head.mean_log - base->second.mean_log);
  }
  return changes;
}

/// What classes of steps need of a run beside its rows' points.
struct StepRun {
  RunRows rows;
  EnvironmentItems environment;
};

std::optional<std::vector<EnvironmentChange>> environment_between(const StepRun& before,
                                                                  const StepRun& after) {
  if (before.environment.empty() || after.environment.empty()) return std::nullopt;
  return changes_between(before.environment, after.environment);
}

/// Run by run, so that each is read once or twice, and two are held at a time.
void classify(std::vector<HistorySeries>& all, Store& store) {
  using Step = std::tuple<int64_t, int64_t, HistorySeries*, size_t>;  // runs; which of its changes
  std::vector<Step> steps;
  for (HistorySeries& series : all) {
    series.steps.resize(series.changes.size());
    for (size_t i = 0; i < series.changes.size(); ++i) {
      const size_t at = series.changes[i].at;
      steps.emplace_back(series.points[at - 1].run, series.points[at].run, &series, i);
    }
  }
  std::sort(steps.begin(), steps.end());
  std::map<int64_t, StepRun> runs;
  for (const auto& [before, after, series, i] : steps) {
    const std::array around = {before, after};
    std::erase_if(runs, [&](const auto& run) { return !std::ranges::count(around, run.first); });
    for (const int64_t run : around) {
      const auto [read, first] = runs.try_emplace(run);
      if (first) read->second = {read_run_rows(store, run), store.environment(run)};
    }
    const StepRun &from = runs.at(before), &to = runs.at(after);
    const ChangePoint& change = series->changes[i];
    series->steps[i] = classify_step(
        {series->points[change.at - 1].recorded, series->points[change.at].recorded,
         change.after - change.before, changes_of_unchanged(from.rows, to.rows, *series),
         environment_between(from, to)});
  }
}

}  // namespace

std::string code_between(const std::string& before, const std::string& after) {
  if (before.empty() || after.empty()) return "";
  return before == after ? "same" : "changed";
}

std::vector<HistoryPoint> all_points(const HistorySeries& series) {
  std::vector<HistoryPoint> all = series.points;
  all.insert(all.end(), series.noisy.begin(), series.noisy.end());
  std::ranges::sort(all, {}, &HistoryPoint::run);
  return all;
}

std::string row_name(const std::string& key, const std::string& variant) {
  return key + '\n' + variant;
}

void each_row_level(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add) {
  if (read_row_levels(store, run, add)) return;
  std::unordered_map<std::string, int64_t> cases;
  Statement q(store.database(),
              "SELECT key, case_id FROM bench_case WHERE case_id IN (SELECT case_id FROM process "
              "JOIN result USING (process_id) WHERE run_id = ?1)");
  q.bind(run);
  while (q.step()) cases[q.text(0)] = q.integer(1);
  const LevelChoice choice{.run = run, .verified = false, .for_verdict = true};
  const Sides sides = collect([&](const auto& one) {
    walk_levels(store.database(), choice, [&](const WalkedLevel& at) { one(at.level); });
  });
  std::vector<RowLevel> rows;
  for (const auto& [id, side] : sides) {
    rows.push_back({cases.at(id.key), id.key, id.variant, side.status, side.judged, side.level.n,
                    side.level.mean_log, side.level.sd_log, side.comparable(), side.code});
  }
  // As they are read where they were written down.
  std::ranges::sort(rows, {},
                    [](const RowLevel& row) { return std::pair(row.case_id, row.variant); });
  std::ranges::for_each(rows, add);
}

RunRows read_run_rows(Store& store, int64_t run) {
  std::unordered_map<int64_t, std::string> keys;
  Statement cases(store.database(), "SELECT case_id, key FROM bench_case");
  while (cases.step()) keys[cases.integer(0)] = cases.text(1);
  RunRows rows;
  each_row_level(store, run, [&](const RowLevel& row) {
    if (!row.comparable) return;
    rows[row_name(keys[row.case_id], row.variant)] = {row.mean_log, row.judged, row.code};
  });
  return rows;
}

std::vector<HistorySeries> read_history(Store& store, const HistoryQuery& query) {
  std::map<int64_t, RunInfo> runs;
  std::vector<HistorySeries> all;
  for (const Name& name : find_names(store, query)) add_series(store, name, query.klass, runs, all);
  if (all.empty()) {
    std::set<std::string> classes;
    for (const auto& [id, run] : runs) classes.insert(run.device.klass);
    give_up(Exit::coverage,
            "{}: no complete run has a level for {}; complete runs of these are of the classes: {}",
            store.database().path(),
            flags_text({{"filter", query.case_pattern},
                        {"variant", query.variant_pattern},
                        {"class", query.klass}}),
            list_some({classes.begin(), classes.end()}));
  }
  std::stable_sort(all.begin(), all.end(), [](const HistorySeries& a, const HistorySeries& b) {
    return NaturalLess()(std::pair{a.key, a.variant}, std::pair{b.key, b.variant});
  });
  const auto log = [](const HistoryPoint& p) { return p.level.mean_log; };
  for (HistorySeries& series : all) {
    keep_newest(series, static_cast<size_t>(query.last));
    series.changes = steps_in(mapped(series.points, log), code_changes(series.points));
  }
  classify(all, store);
  return all;
}

}  // namespace moegate
