// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/stats.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/campaign/runner.h"
#include "harness/judge/exit.h"
#include "harness/kernel/kernel.h"

namespace moegate {
namespace {

/// Operators that share the aligned rows.
using Layer = std::pair<std::string, int>;  // shape, tokens
Layer layer_of(const TileTask& task) {
  return {task.shape, task.tokens};
}

/// The fastest time of each operator at one block.
using Fastest = std::map<std::string, double>;

struct Blocks {
  std::map<int, Fastest> fastest;
  std::set<std::string> ops;

  void add(const TileTime& time) {
    ops.insert(time.task.op);
    auto [at, first] = fastest[time.config.block].try_emplace(time.task.op, time.us);
    if (!first) at->second = std::min(at->second, time.us);
  }
  /// Infinite for a block that an operator has no candidate for.
  double sum(int block) const {
    const Fastest& one = fastest.at(block);
    if (one.size() < ops.size()) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (const auto& [op, us] : one) sum += us;
    return sum;
  }
  /// That of the least sum; of equal sums the smallest block: less padding.
  int best() const {
    const auto sum_of = [&](const auto& one) { return sum(one.first); };
    return std::ranges::min_element(fastest, {}, sum_of)->first;
  }
};

std::map<Layer, Blocks> blocks_of(const std::vector<TileTime>& times) {
  std::map<Layer, Blocks> layers;
  for (const TileTime& time : times) layers[layer_of(time.task)].add(time);
  return layers;
}

}  // namespace

std::vector<TileTime> candidate_times(const std::vector<TileRow>& rows) {
  using Name = std::pair<TileTask, std::string>;
  std::map<Name, std::pair<TileConfig, std::map<std::string, std::vector<double>>>> candidates;
  std::map<TileTask, std::set<std::string>> bases;
  std::set<Name> failed;
  for (const TileRow& row : rows) {
    const Name name = {row.task, row.config.text()};
    bases[row.task].insert(row.base);
    if (!row.measured) failed.insert(name);
    auto& [config, us] = candidates[name];
    config = row.config;
    us[row.base].push_back(row.us);
  }
  std::vector<TileTime> times;
  for (const auto& [name, candidate] : candidates) {
    const auto& [config, by_base] = candidate;
    if (failed.contains(name) || by_base.size() < bases[name.first].size()) continue;
    double sum = 0;
    for (const auto& [base, us] : by_base) sum += median(us);
    times.push_back({name.first, config, sum / static_cast<double>(by_base.size())});
  }
  return times;
}

std::vector<TilePick> pick_tiles(const std::vector<TileTime>& times) {
  const auto layers = blocks_of(times);
  std::vector<TileTime> fastest_first = times;
  std::ranges::stable_sort(fastest_first, {}, &TileTime::us);
  std::map<TileTask, TilePick> by_task;
  for (const TileTime& time : fastest_first) {
    const Blocks& blocks = layers.at(layer_of(time.task));
    const int block = blocks.best();
    if (time.config.block != block || std::isinf(blocks.sum(block))) continue;
    by_task.try_emplace(time.task, TilePick{time, {}});
  }
  for (const TileTime& time : fastest_first) {
    const auto at = by_task.find(time.task);
    if (at == by_task.end() || at->second.second) continue;
    if (time.config != at->second.best.config) at->second.second = time;
  }
  std::vector<TilePick> picks;
  for (const auto& [task, pick] : by_task) picks.push_back(pick);
  return picks;
}

std::vector<TileTime> contenders(const std::vector<TileTime>& times, double slack) {
  const auto layers = blocks_of(times);
  std::vector<TileTime> left;
  for (const TileTime& time : times) {
    const Blocks& blocks = layers.at(layer_of(time.task));
    const int block = time.config.block;
    const double fastest = blocks.fastest.at(block).at(time.task.op);
    const bool near = blocks.sum(block) <= (1 + slack) * blocks.sum(blocks.best());
    if (near && time.us <= (1 + slack) * fastest) left.push_back(time);
  }
  return left;
}

Table tune_table(const std::vector<TilePick>& picks) {
  Table table{{"tokens", "operator", "best", "us", "second best", "us"}, {}};
  for (const TilePick& pick : picks) {
    const auto us = [](const TileTime& time) { return fmt::format("{:.2f}", time.us); };
    table.rows.push_back({{std::to_string(pick.best.task.tokens), true},
                          {pick.best.task.op},
                          {pick.best.config.text()},
                          {us(pick.best), true},
                          {pick.second ? pick.second->config.text() : ""},
                          {pick.second ? us(*pick.second) : "", true}});
  }
  return table;
}

Tally measure_narrowed(Store& store, Prepared prepared, int64_t resume, int rounds,
                       const Narrowed& again) {
  const InterruptGuard guard;
  Recording recording(store, std::move(prepared), "moegate tune");
  recording.begin(resume);
  const std::vector<RowName> rows = recording.plan().rows();
  std::set<RowName> names(rows.begin(), rows.end());
  for (int round = 0; round < rounds && !InterruptGuard::interrupted(); ++round) {
    Progress progress(names.size());
    recording.round(round, names, progress);
    if (round == 0) names = again(recording.run(), rows);
  }
  recording.finish(InterruptGuard::interrupted());
  return recording.tally();
}

namespace {

namespace fs = std::filesystem;

std::set<std::string> tunable_ops() {
  std::set<std::string> ops;
  for (const Variant& v : all_variants()) {
    if (is_tile_variant(v.name)) ops.insert(v.op);
  }
  return ops;
}

/// A pattern for names as `list cases` shows them, or without their prefix, as one for tile
/// variants alone.
std::string of_tile_variants(std::string pattern) {
  const std::string prefix = kTilePrefix;
  for (const std::string& given : {"^" + prefix, prefix}) {
    for (size_t at; (at = pattern.find(given)) != std::string::npos;)
      pattern.erase(at, given.size());
  }
  return fmt::format("^{}.*(?:{})", prefix, pattern);
}

void refuse_untunable(const std::vector<std::string>& ops) {
  const auto known = tunable_ops();
  for (const std::string& op : ops) {
    if (known.contains(op)) continue;
    usage_error("--op {}: this operator has no tile configurations{}; name one of: {}", op,
                did_you_mean(op, {known.begin(), known.end()}), fmt::join(known, ", "));
  }
}

/// The planned cases, by key.
using TunedCases = std::map<std::string, Case>;

TileRow row_of(const Case& c, const std::string& variant) {
  const auto block = static_cast<int>(c.get_int("block", 1, std::numeric_limits<int>::max()));
  const auto tokens = static_cast<int>(c.get_int("tokens", 1, std::numeric_limits<int>::max()));
  Case base = c;
  base.params.erase("block");
  return {{tile_shape(c).name(), tokens, c.op}, base.key(), config_of_variant(variant, block)};
}

/// All results of a run so far.
std::vector<TileRow> read_rows(Store& store, int64_t run, const TunedCases& cases) {
  std::vector<TileRow> rows;
  for (const Level& level : store.levels(run)) {
    TileRow row = row_of(cases.at(level.key), level.variant);
    row.measured = level.result.measured();
    row.us = level.result.span_ns / 1e3;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::set<RowName> contending(const std::vector<TileRow>& rows, const TunedCases& cases,
                             const std::vector<RowName>& planned) {
  std::set<std::pair<TileTask, std::string>> left;
  for (const TileTime& time : contenders(candidate_times(rows), kContends)) {
    left.insert({time.task, time.config.text()});
  }
  std::set<RowName> again;
  for (const RowName& name : planned) {
    const TileRow row = row_of(cases.at(name.first), name.second);
    if (left.contains({row.task, row.config.text()})) again.insert(name);
  }
  return again;
}

/// "routing: uniform; launch: graph": what the cases of a shape have in common.
std::string conditions_of(const TunedCases& cases, const std::string& shape) {
  const std::set<std::string> ops = tunable_ops();
  std::map<std::string, std::set<std::string>> values;
  for (const auto& [key, c] : cases) {
    if (!ops.contains(c.op) || tile_shape(c).name() != shape) continue;
    for (const char* name : {"routing", "launch", "cache"}) values[name].insert(c.get(name));
  }
  std::string text;
  for (const auto& [name, all] : values) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, fmt::join(all, ", "));
  }
  return text;
}

void make_folder(const fs::path& folder, const char* flag) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    usage_error("{} {}: cannot make this folder: {}", flag, folder.string(), error.message());
}

fs::path file_of(const fs::path& out, const std::string& klass, const std::string& shape) {
  return out / klass / (shape + ".ini");
}

/// What a file has from before this tuning.
TileText present_tiles(const fs::path& file, const std::string& klass) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  return read_tile_text(file.string(), read_file(file), klass);
}

/// Throws Error(usage) for a file that could not be completed once its shape is tuned.
void check_present_tiles(const Plan& plan, const fs::path& out) {
  const std::string& klass = plan.hello.device.klass;
  const std::set<std::string> ops = tunable_ops();
  std::set<std::string> shapes;
  for (const PlannedCase& c : plan.cases) {
    if (ops.contains(c.spec.op)) shapes.insert(tile_shape(c.spec).name());
  }
  for (const std::string& shape : shapes) present_tiles(file_of(out, klass, shape), klass);
}

std::vector<std::string> about_tiles(const RunInfo& run, const std::string& conditions) {
  return {"Fastest tile configurations by [operator.tokens]; see suites/tiles/README.md",
          about_class(run.device.klass),
          fmt::format("{} ({}), {}, {}, commit {}{}, protocol {}, {}, at most {} processes",
                      run.device.name, run.device.uuid, run.device.driver,
                      run.started.substr(0, 10), run.git_sha.empty() ? "unknown" : run.git_sha,
                      run.dirty ? " (dirty)" : "", run.protocol, run.timer, run.rounds),
          conditions, run.command};
}

/// One file per shape.
std::vector<TunedFile> write_tiles(const RunInfo& run, const TunedCases& cases,
                                   const std::vector<TilePick>& picks, const fs::path& out) {
  std::map<std::string, std::vector<TilePick>> shapes;
  for (const TilePick& pick : picks) shapes[pick.best.task.shape].push_back(pick);
  std::vector<TunedFile> files;
  for (const auto& [shape, its] : shapes) {
    std::vector<TunedTile> tiles;
    for (const TilePick& pick : its) {
      tiles.push_back(
          {pick.best.task.op, pick.best.task.tokens, pick.best.config, pick.best.us, ""});
    }
    std::ranges::stable_sort(tiles, {}, &TunedTile::op);
    const fs::path path = file_of(out, run.device.klass, shape);
    make_folder(path.parent_path(), "--out");
    MergedTiles merged = merge_tiles(present_tiles(path, run.device.klass),
                                     about_tiles(run, conditions_of(cases, shape)), tiles);
    write_file_atomically(path, merged.text);
    files.push_back({path, its, std::move(merged)});
  }
  return files;
}

std::vector<TileTask> missing_of(const std::vector<TileRow>& rows,
                                 const std::vector<TilePick>& picks) {
  std::set<TileTask> missing;
  for (const TileRow& row : rows) missing.insert(row.task);
  for (const TilePick& pick : picks) missing.erase(pick.best.task);
  return {missing.begin(), missing.end()};
}

}  // namespace

RunOptions tuning_run(RunOptions run, const std::vector<std::string>& ops) {
  run.label = "tune";
  compile_pattern("--variant", run.variant);
  run.variant = of_tile_variants(run.variant);
  compile_pattern("--filter", run.filter);
  refuse_untunable(ops);
  run.ops = ops;
  run.axes.try_emplace("block", Axes::mapped_type{"16", "32", "64", "128"});
  run.axes.try_emplace("cache", Axes::mapped_type{"cold"});
  return run;
}

Tuned tune(const TuneOptions& options, WorkerSource& source) {
  Prepared prepared = prepare(options.run, source);  // a bad suite must leave nothing behind
  make_folder(options.out, "--out");                 // not only when hours have been measured
  check_present_tiles(prepared.plan, options.out);   // likewise
  const fs::path db = options.run.db;
  if (db.has_parent_path()) make_folder(db.parent_path(), "--db");
  Store store = Store::open(options.run.db, Store::Mode::write);
  TunedCases cases;
  for (const PlannedCase& c : prepared.plan.cases) cases.emplace(c.spec.key(), c.spec);
  Tuned tuned;
  tuned.tally = measure_narrowed(store, std::move(prepared), options.resume, options.run.rounds,
                                 [&](int64_t run, const auto& planned) {
                                   return contending(read_rows(store, run, cases), cases, planned);
                                 });
  if (tuned.tally.interrupted) return tuned;
  const std::vector<TileRow> rows = read_rows(store, tuned.tally.run, cases);
  const std::vector<TilePick> picks = pick_tiles(candidate_times(rows));
  tuned.files = write_tiles(store.run_info(tuned.tally.run), cases, picks, options.out);
  tuned.missing = missing_of(rows, picks);
  return tuned;
}

Exit tune_exit(const Tuned& tuned) {
  return gravest({tuned.tally.exit(), tuned.missing.empty() ? Exit::ok : Exit::coverage});
}

}  // namespace moegate
