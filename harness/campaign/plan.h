// SPDX-License-Identifier: Apache-2.0
// What a run sets out to do: options, the cases of its suites, and which variants run on them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/campaign/suite.h"
#include "harness/worker/worker.h"

namespace moegate {

constexpr int kProtocol =
    1;  // see harness/README.md; results of different protocols are never compared

/// What to run. Everything here that shapes the measurement is stored with the run (to_json), so
/// that
/// --resume and repro need nothing but the store.
struct RunOptions {
  std::vector<std::string> suites;
  Axes axes;           // --axis, --cache, --launch, --seed
  std::string filter;  // regular expression searched in the case key; empty: all
  std::string kernel;  // regular expression searched in the variant name; empty: all
  int shard = 0, shards = 1;
  int rounds = 3;  // worker processes: the unit of evidence
  double case_timeout_s = 120;
  WorkerOptions worker;
  std::string db = "results.sqlite";
  std::string label;
  std::map<std::string, std::string> tags;
  std::string command;  // what the user typed
  /// Faults built into every launch (canary.h): slow-downs dealt out over the rows, and a factor.
  std::vector<double> canary_slow_by;
  double canary_scale = 1;

  /// Whether less than the whole of the suites is run, so that absence means nothing.
  bool filtered() const {
    return !filter.empty() || !kernel.empty() || !axes.empty() || shards > 1;
  }
  std::string to_json() const;
  void from_json(const std::string& text);
};

/// Key of a case, and a variant.
using RowName = std::pair<std::string, std::string>;

/// One case, as the device runs it, with the variants to run on it.
struct PlannedCase {
  Case spec;
  std::vector<std::string> variants;
};

/// What one program is to measure.
struct Plan {
  Hello hello;  // of the program
  std::vector<PlannedCase> cases;

  std::vector<RowName> rows() const;
};

/// All cases of the suites, with axes applied, as a backend can run them. Throws Error(usage) for
/// what load_suite() refuses, and for a common parameter that has no such value.
std::vector<Case> load_cases(const RunOptions& options, const Hello& hello);
/// Has the worker's operators look at the cases. Throws Error(usage) for the first that cannot be.
void check_cases(const std::vector<Case>& cases, Worker& worker);
/// Which of the cases and of a program's variants run: filter, kernel and shard applied, equal keys
/// once. Throws Error(coverage) when nothing is left, naming what matched nothing.
Plan select_rows(const RunOptions& options, const std::vector<Case>& cases, const Hello& hello);
/// Has the worker look at the planned cases once more, as they are on its device (block = tuned).
/// Throws Error(usage) for the first that cannot be there.
void check_on_device(const Plan& plan, Worker& worker);
/// All of these in their order: what a program is to measure. Throws Error(usage, coverage).
Plan make_plan(const RunOptions& options, Worker& worker);
/// The plan with one variant per case, for what asks about the case rather than its variants: the
/// operator's yardstick, else the first that supports the case.
Plan one_variant_each(Plan plan, Worker& worker);

}  // namespace moegate
