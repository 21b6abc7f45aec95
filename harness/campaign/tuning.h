// SPDX-License-Identifier: Apache-2.0
// The search for the fastest variants and tile configurations: what is tried, what is picked, and
// the files that are written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/campaign/recording.h"
#include "harness/campaign/tile_merge.h"
#include "harness/kernel/tile_file.h"

namespace moegate {

// What `moegate tune` decides from the times that it measured. Pure functions; measuring is
// cmd_tune.cc's.

/// Operator, shape (tuned_name()) and token count: what gets one configuration.
struct TileTask {
  std::string shape;
  int tokens = 0;
  std::string op;
  std::string routing = {};  // that it is for; empty: for all of the suite

  auto operator<=>(const TileTask&) const = default;
  /// Names the file of its entry.
  std::string file() const { return routed_name(shape, routing); }
};

/// One result of a candidate. A task has several cases where its suite has several routings or
/// launch modes.
struct TileRow {
  TileTask task;
  std::string base;     // the case, its block left out
  std::string routing;  // empty: its operator has none
  TileConfig config;
  bool measured = false;
  double us = 0;
};

/// A candidate's time: the mean over the task's cases of the median over processes.
struct TileTime {
  TileTask task;
  TileConfig config;
  double us;
};

/// Those that were measured in every case of their task, and nowhere failed.
std::vector<TileTime> candidate_times(const std::vector<TileRow>& rows);

struct TilePick {
  TileTime best;
  std::optional<TileTime> second;  // the task's fastest other candidate, whatever its block
};

/// One pick per task. Operators of one shape and token count get one block, since they share the
/// aligned rows: that at which the sum of their fastest candidates is least. Tasks without a common
/// block get none.
std::vector<TilePick> pick_tiles(const std::vector<TileTime>& times);

/// A routing gets picks of its own where those for all routings take this much longer in it.
constexpr double kRoutingPays = 0.03;

/// The rows of tasks that have several routings, as rows of a task for each of these.
std::vector<TileRow> by_routing(std::vector<TileRow> rows);

/// The picks of by_routing()'s tasks that pay beside `general`, the picks for all routings: by
/// kRoutingPays in the sum over the operators that share a block.
std::vector<TilePick> routed_picks(const std::vector<TileRow>& rows,
                                   const std::vector<TilePick>& general);

/// After the first process only what is within this share of the best is measured again: more than
/// processes differ by, on a GPU and, quiet, on a host.
constexpr double kContends = 0.1;

/// Candidates that could be picked if times were wrong by the share `slack`: others need no further
/// process.
std::vector<TileTime> contenders(const std::vector<TileTime>& times, double slack);

/// Which of the planned rows of a run are measured again after the first process.
using Narrowed = std::function<std::set<RowName>(int64_t run, const std::vector<RowName>&)>;
/// Measures a run of `moegate tune`, or with `resume` > 0 continues that one: every row in the
/// first of so many processes, in the others what is left.
Tally measure_narrowed(Store& store, Prepared prepared, int64_t resume, int rounds,
                       const Narrowed& again);

/// Best and second best by token count.
Table tune_table(const std::vector<TilePick>& picks);

struct TuneOptions {
  RunOptions run;             // as tuning_run() made it
  int64_t resume = 0;         // the run to finish; 0: a new one
  std::filesystem::path out;  // folder of the files: OUT/CLASS/SHAPE.ini
};

/// Turns what the user selected into a run over every candidate: all tile variants, for operators
/// in blocks all of these unless he named some, cold. `ops`: operators to tune, empty for all that
/// can be. Throws Error(usage) for an operator that has nothing to tune.
RunOptions tuning_run(RunOptions run, const std::vector<std::string>& ops);

struct TunedFile {
  std::filesystem::path path;
  std::vector<TilePick> picks;
  MergedTiles merged;  // with what the file had
};

struct Tuned {
  Tally tally;
  std::vector<TunedFile> files;   // one per shape; none after an interruption
  std::vector<TileTask> missing;  // tasks that got no configuration
};

/// Measures and writes the files, keeping what they have for other operators and token counts.
/// Throws Error(usage) for folders that cannot be made and, before anything is measured, for files
/// that read_tile_text() refuses.
Tuned tune(const TuneOptions& options, WorkerSource& source);

/// A task without a configuration is Exit::coverage.
Exit tune_exit(const Tuned& tuned);

}  // namespace moegate
