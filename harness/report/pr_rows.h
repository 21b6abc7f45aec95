// SPDX-License-Identifier: Apache-2.0
// The numbers behind the tables of pr_table.h: what became of each row, its speed-up and interval,
// and the geomean of a table.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/stats.h"
#include "harness/report/pr_table.h"

namespace moegate {

/// uncompared: wrong, missing, new, not comparable.
enum class PrKind { faster, slower, same, inconclusive, uncompared };

struct PrRow {
  const CaseVerdict* verdict;
  const PrCase* facts;
  PrKind kind;
  std::optional<double> log_speedup;  // absent where nothing was compared
  const Side* base;                   // null: not measured there
  const Side* head;
};

/// The rows of one table share these: suite, model, op, config, variant.
using PrGroup = std::array<std::string, 5>;

/// Every row that can have a speed-up, by table, tokens ascending. The rows point into `tables`.
std::map<PrGroup, std::vector<PrRow>> group_rows(const PrTables& tables);

/// Two-sided 95 % interval of the log speed-up, from the one-sided 95 % bounds that were judged;
/// nothing without a spread.
std::optional<Interval> log_interval(const PrRow& row);

struct PrGeomean {
  int n = 0;  // rows with a speed-up
  double log_speedup = 0;
  bool all_identical = true;
  std::optional<Interval> interval;  // of the logarithm
};

/// Over every row with a speed-up. The interval is Student's over the rounds that all timed rows
/// have (another set of rows has another mean), of the mean over the rows, identical ones as 0;
/// nothing below two such rounds.
PrGeomean geomean_of(const std::vector<PrRow>& rows);

/// The value of a key; null when it is absent.
template <class Map>
const typename Map::mapped_type* find_or_null(const Map& map, const typename Map::key_type& key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace moegate
