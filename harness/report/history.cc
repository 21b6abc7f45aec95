// SPDX-License-Identifier: Apache-2.0
#include "harness/report/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "harness/base/natural_less.h"
#include "harness/base/pattern.h"
#include "harness/base/stats.h"
#include "harness/judge/gate.h"
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
  const Pattern cases = compile_pattern("--case", query.case_pattern);
  const Pattern variants = compile_pattern("--variant", query.variant_pattern);
  Statement q(store.database(),
              "SELECT DISTINCT case_id, key, variant FROM result JOIN bench_case USING (case_id)");
  std::vector<Name> names;
  std::vector<std::string> there;
  const Columns columns(q);
  while (q.step()) {
    Name name{columns.integer("case_id"), columns.text("key"), columns.text("variant")};
    there.push_back(name.key + " " + name.variant);
    if (cases.found_in(name.key) && variants.found_in(name.variant))
      names.push_back(std::move(name));
  }
  if (!names.empty()) return names;
  std::sort(there.begin(), there.end(), NaturalLess());
  throw Error(Exit::coverage,
              fmt::format("{}: nothing matches --case '{}' --variant '{}'; there is: {}",
                          store.database().path(), query.case_pattern, query.variant_pattern,
                          list_some(there)));
}

/// What a run has of one case and variant.
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
  const Columns columns(q);
  std::map<int64_t, RunLevels> runs;
  while (q.step()) {
    RunLevels& run = runs[columns.integer("run_id")];
    run.facts = columns.text("facts");
    run.gpu = static_cast<int>(columns.real("which_gpu"));
    run.levels.push_back({.key = name.key,
                          .suite = columns.text("suite"),
                          .variant = name.variant,
                          .round = static_cast<int>(columns.integer("round")),
                          .result = columns.row<Result>()});
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
          .commit = run.git_sha + (run.dirty ? "+dirty" : ""),
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
    if (!side.measured() || side.disturbed || side.judged == Judged::is_yardstick) continue;
    const std::string measured_on = uuid_of(run, found_levels.gpu);
    const std::string uuid = host ? "" : measured_on;
    HistorySeries& series = found[{run.device.klass, uuid, side.timer, run.flush, run.protocol}];
    if (series.points.empty()) {
      series = {name.key,  name.variant, run.device.klass,   uuid, side.timer,
                run.flush, run.protocol, run.device.backend, {},   {}};
    }
    series.points.push_back({id, run.started, run.label, measured_on, run.git_sha, run.dirty,
                             side.level, side.code, recorded(run, found_levels, side)});
  }
  for (auto& [conditions, series] : found) all.push_back(std::move(series));
}

void find_changes(HistorySeries& series, int last) {
  const auto keep = static_cast<size_t>(last);
  if (last > 0 && series.points.size() > keep)
    series.points.erase(series.points.begin(), series.points.end() - last);
  std::vector<double> logs;
  for (const HistoryPoint& p : series.points) logs.push_back(p.level.mean_log);
  series.changes = change_points(logs);
}

/// The sides of runs that a step lies between, each read once.
class SidesOfRuns {
 public:
  explicit SidesOfRuns(Store& store) : store_(store) {}
  const Sides& of(int64_t run) {
    const auto [sides, first] = sides_.try_emplace(run);
    if (first) sides->second = collect(store_.levels(run));
    return sides->second;
  }

 private:
  Store& store_;
  std::map<int64_t, Sides> sides_;
};

/// Logarithms of what rows of both runs changed by, but for one row and those whose code may have
/// changed.
std::vector<double> changes_of_unchanged(const Sides& before, const Sides& after,
                                         const HistorySeries& but) {
  std::vector<double> changes;
  for (const auto& [id, head] : after) {
    const auto base = before.find(id);
    const bool itself = id.key == but.key && id.variant == but.variant;
    if (itself || base == before.end() || !same_code(base->second, head)) continue;
    if (!head.measured() || !base->second.measured() || head.judged != base->second.judged)
      continue;
    if (head.disturbed || base->second.disturbed || head.judged == Judged::is_yardstick) continue;
    changes.push_back(head.level.mean_log - base->second.level.mean_log);
  }
  return changes;
}

void classify(HistorySeries& series, SidesOfRuns& sides) {
  for (const ChangePoint& change : series.changes) {
    const HistoryPoint &before = series.points[change.at - 1], &after = series.points[change.at];
    series.steps.push_back(
        classify_step({before.recorded, after.recorded, change.after - change.before,
                       changes_of_unchanged(sides.of(before.run), sides.of(after.run), series)}));
  }
}

std::string classes_of(const std::map<int64_t, RunInfo>& runs) {
  std::vector<std::string> classes;
  for (const auto& [id, run] : runs) classes.push_back(run.device.klass);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return list_some(classes);
}

}  // namespace

std::vector<HistorySeries> read_history(Store& store, const HistoryQuery& query) {
  std::map<int64_t, RunInfo> runs;
  std::vector<HistorySeries> all;
  for (const Name& name : find_names(store, query)) add_series(store, name, query.klass, runs, all);
  if (all.empty()) {
    throw Error(
        Exit::coverage,
        fmt::format("{}: no complete run has a level for --case '{}' --variant '{}'{}; "
                    "complete runs of these are of the classes: {}",
                    store.database().path(), query.case_pattern, query.variant_pattern,
                    query.klass.empty() ? "" : " --class '" + query.klass + "'", classes_of(runs)));
  }
  std::stable_sort(all.begin(), all.end(), [](const HistorySeries& a, const HistorySeries& b) {
    return NaturalLess()(std::pair{a.key, a.variant}, std::pair{b.key, b.variant});
  });
  SidesOfRuns sides(store);
  for (HistorySeries& series : all) {
    find_changes(series, query.last);
    classify(series, sides);
  }
  return all;
}

}  // namespace moegate
