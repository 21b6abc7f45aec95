// SPDX-License-Identifier: Apache-2.0
// An A/B as the tables that people paste into pull requests: one per model, operator,
// variant and configuration, a row per number of tokens, with what is needed to believe them. Never
// a bare speed-up: what is not distinguished from no change prints `~`.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/stats.h"
#include "harness/judge/comparison.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

/// What the tables say of a case beside its levels.
struct PrCase {
  std::string model;    // section of the suite
  std::string op;       // operator
  std::string config;   // the other parameters that are not at their default: "experts=256 topk=8"
  int64_t tokens = -1;  // -1: the operator has no such parameter
  Cost cost;            // of one launch
};

/// Mean spans of one side: geometric over its processes, in microseconds.
using SpansUs = std::map<CaseId, double, CaseIdLess>;

/// Everything the tables are made of. The sides and spans of base and head have the same ids, which
/// are those of `result` too.
struct PrTables {
  RunInfo base, head;  // measured in paired rounds on one device
  Sides base_sides, head_sides;
  SpansUs base_us, head_us;
  std::map<std::string, PrCase> cases;     // by key
  std::map<std::string, double> ceilings;  // of the device; empty: none measured
  GateResult result;                       // of judging head against base
  Limits limits = Limits::cuda();
};

/// Everything but `result` and `limits`. Throws Error(usage) when the runs were measured on
/// different devices, or do not hold the variants of the pair.
PrTables read_pr_tables(Store& store, int64_t base, int64_t head,
                        const std::optional<VariantPair>& pair = {});

/// A section of rank 1 for each table, and a footer of rank 0 that says how it was measured.
/// Speed-up = before / after = 1 / (1 + effect), from the judgement; its two-sided 95 % interval
/// from the judgement's bounds and degrees of freedom. The geomean is over every row of a table
/// that was compared, identical ones as 1, with an interval from the geomeans of the rounds that
/// all of them have (Student t). A host's
/// yardstick, and what is to one of other code, has the speed-up of its own time.
std::vector<Section> pr_sections(const PrTables& tables);

// The numbers behind the tables of pr_table.h: what became of each row, its speed-up and interval,
// and the geomean of a table.

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
