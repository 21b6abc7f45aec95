// SPDX-License-Identifier: Apache-2.0
// What `moegate tune` decides from the times that it measured. Pure functions; measuring is
// cmd_tune.cc's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/kernel/tile_file.h"

namespace moegate {

/// Operator, shape (TileShape::name()) and token count: what gets one configuration.
struct TileTask {
  std::string shape;
  int tokens = 0;
  std::string op;

  auto operator<=>(const TileTask&) const = default;
};

/// One result of a candidate. A task has several cases where its suite has several routings or
/// launch modes.
struct TileRow {
  TileTask task;
  std::string base;  // the case, its block left out
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

/// Candidates that could be picked if times were wrong by the share `slack`: others need no further
/// process.
std::vector<TileTime> contenders(const std::vector<TileTime>& times, double slack);

/// Best and second best by token count.
Table tune_table(const std::vector<TilePick>& picks);

}  // namespace moegate
