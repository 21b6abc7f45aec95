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
#include "harness/kernel/tuned.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// Operators that share the aligned rows.
using Layer = std::pair<std::string, int>;  // file, tokens
Layer layer_of(const TileTask& task) {
  return {task.file(), task.tokens};
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

std::set<std::string> tunable_ops() {
  std::set<std::string> ops;
  for (const Variant& v : all_variants()) {
    if (is_tile_variant(v.name)) ops.insert(v.op);
  }
  return ops;
}

/// Whether tuning an operator chooses the block of its rows, too.
bool tunes_blocks(const std::string& op) {
  return !find_op(op).tuning.usual;
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
    usage_error("--op {}: this operator has nothing to tune{}; name one of: {}", op,
                did_you_mean(op, {known.begin(), known.end()}), fmt::join(known, ", "));
  }
}

/// The planned cases, by key.
using TunedCases = std::map<std::string, Case>;

TileRow row_of(const Case& c, const std::string& variant) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const bool in_blocks = tunes_blocks(c.op);
  const auto block = in_blocks ? static_cast<int>(c.get_int("block", 1, kMost)) : 0;
  Case base = c;
  if (in_blocks) base.params.erase("block");
  return {{tuned_name(c), tuned_tokens(c), c.op},
          base.key(),
          routing_of(c),
          config_of_variant(variant, block)};
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
  for (const auto& compared : {rows, by_routing(rows)}) {
    for (const TileTime& time : contenders(candidate_times(compared), kContends)) {
      left.insert({time.task, time.config.text()});
    }
  }
  std::set<RowName> again;
  for (const RowName& name : planned) {
    const TileRow row = row_of(cases.at(name.first), name.second);
    TileTask routed = row.task;
    routed.routing = row.routing;
    const std::string config = row.config.text();
    if (left.contains({row.task, config}) || left.contains({routed, config})) again.insert(name);
  }
  return again;
}

/// "cache: cold; launch: graph; routing: uniform": what the cases of a shape have in common.
std::string conditions_of(const TunedCases& cases, const std::string& shape) {
  const std::set<std::string> ops = tunable_ops();
  std::map<std::string, std::set<std::string>> values;
  for (const auto& [key, c] : cases) {
    if (!ops.contains(c.op)) continue;
    const std::string own = tuned_name(c), routing = routing_of(c);
    if (own != shape && routed_name(own, routing) != shape) continue;
    for (const char* name : {"launch", "cache"}) values[name].insert(c.get(name));
    if (!routing.empty()) values["routing"].insert(routing);
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
    if (!ops.contains(c.spec.op)) continue;
    shapes.insert(tuned_name(c.spec));
    shapes.insert(routed_name(tuned_name(c.spec), routing_of(c.spec)));
  }
  for (const std::string& shape : shapes) present_tiles(tile_path(out, klass, shape), klass);
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
  for (const TilePick& pick : picks) shapes[pick.best.task.file()].push_back(pick);
  std::vector<TunedFile> files;
  for (const auto& [shape, its] : shapes) {
    auto tiles = mapped(its, [](const auto& pick) {
      const auto& [task, config, us] = pick.best;
      return TunedTile{task.op, task.tokens, config, us, ""};
    });
    std::ranges::stable_sort(tiles, {}, &TunedTile::op);
    const fs::path path = tile_path(out, run.device.klass, shape);
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
  return mapped(by_task, [](const auto& one) { return one.second; });
}

std::vector<TileRow> by_routing(std::vector<TileRow> rows) {
  std::map<TileTask, std::set<std::string>> routings;
  for (const TileRow& row : rows) routings[row.task].insert(row.routing);
  std::erase_if(rows, [&](const TileRow& row) { return routings.at(row.task).size() < 2; });
  for (TileRow& row : rows) row.task.routing = row.routing;
  return rows;
}

std::vector<TilePick> routed_picks(const std::vector<TileRow>& rows,
                                   const std::vector<TilePick>& general) {
  const std::vector<TileTime> times = candidate_times(by_routing(rows));
  std::map<std::pair<TileTask, std::string>, double> us;
  for (const TileTime& time : times) us[{time.task, time.config.text()}] = time.us;
  std::map<TileTask, std::string> usual;
  for (const TilePick& pick : general) usual[pick.best.task] = pick.best.config.text();
  std::vector<TilePick> picks = pick_tiles(times);
  std::map<Layer, double> own, others;  // sums over the operators of a layer
  for (const TilePick& pick : picks) {
    TileTask task = pick.best.task;
    task.routing.clear();
    const auto at = usual.find(task);
    if (at == usual.end()) continue;
    own[layer_of(pick.best.task)] += pick.best.us;
    others[layer_of(pick.best.task)] += us.at({pick.best.task, at->second});
  }
  std::erase_if(picks, [&](const TilePick& pick) {
    const Layer layer = layer_of(pick.best.task);
    return others[layer] <= (1 + kRoutingPays) * own[layer];
  });
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
  const auto us = [](const TileTime& time) { return Table::number("{:.2f}", time.us); };
  for (const TilePick& pick : picks) {
    table.add(pick.best.task.tokens, pick.best.task.op, pick.best.config.text(), us(pick.best),
              pick.second ? pick.second->config.text() : "",
              pick.second ? us(*pick.second) : Table::number(""));
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

RunOptions tuning_run(RunOptions run, const std::vector<std::string>& ops) {
  run.label = "tune";
  compile_pattern("--variant", run.variant);
  run.variant = of_tile_variants(run.variant);
  compile_pattern("--filter", run.filter);
  refuse_untunable(ops);
  run.ops = ops;
  const bool by_user = run.axes.contains("block");
  for (const std::string& op : ops.empty() ? tunable_ops() : std::set(ops.begin(), ops.end())) {
    if (!tunes_blocks(op) || by_user) continue;
    run.axes.try_emplace(op + ".block", Axes::mapped_type{"16", "32", "64", "128"});
  }
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
  std::vector<TilePick> picks = pick_tiles(candidate_times(rows));
  const std::vector<TilePick> routed = routed_picks(rows, picks);
  picks.insert(picks.end(), routed.begin(), routed.end());
  tuned.files = write_tiles(store.run_info(tuned.tally.run), cases, picks, options.out);
  tuned.missing = missing_of(rows, picks);
  return tuned;
}

Exit tune_exit(const Tuned& tuned) {
  return gravest({tuned.tally.exit(), tuned.missing.empty() ? Exit::ok : Exit::coverage});
}

}  // namespace moegate
