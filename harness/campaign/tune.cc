// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "harness/base/stats.h"

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
  double least() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [block, one] : fastest) least = std::min(least, sum(block));
    return least;
  }
};

std::map<Layer, Blocks> blocks_of(const std::vector<TileTime>& times) {
  std::map<Layer, Blocks> layers;
  for (const TileTime& time : times) layers[layer_of(time.task)].add(time);
  return layers;
}

void offer(std::optional<TileTime>& best, const TileTime& time) {
  if (!best || time.us < best->us) best = time;
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
  // Of equal sums the smallest block: less padding.
  std::map<Layer, int> chosen;
  for (const auto& [layer, blocks] : layers) {
    const double least = blocks.least();
    for (const auto& [block, fastest] : blocks.fastest) {
      if (least < std::numeric_limits<double>::infinity() && blocks.sum(block) == least) {
        chosen.try_emplace(layer, block);
      }
    }
  }
  std::map<TileTask, std::optional<TileTime>> best, second;
  for (const TileTime& time : times) {
    const auto block = chosen.find(layer_of(time.task));
    if (block != chosen.end() && block->second == time.config.block) offer(best[time.task], time);
  }
  for (const TileTime& time : times) {
    const auto at = best.find(time.task);
    if (at != best.end() && time.config != at->second->config) offer(second[time.task], time);
  }
  std::vector<TilePick> picks;
  for (const auto& [task, time] : best) picks.push_back({*time, second[task]});
  return picks;
}

std::vector<TileTime> contenders(const std::vector<TileTime>& times, double slack) {
  const auto layers = blocks_of(times);
  std::vector<TileTime> left;
  for (const TileTime& time : times) {
    const Blocks& blocks = layers.at(layer_of(time.task));
    const int block = time.config.block;
    const double fastest = blocks.fastest.at(block).at(time.task.op);
    const bool near = blocks.sum(block) <= (1 + slack) * blocks.least();
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

}  // namespace moegate
