// SPDX-License-Identifier: Apache-2.0
// What a run sets out to do: options, the cases of its suites, and which variants run on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/deadline.h"
#include "harness/campaign/suite.h"
#include "harness/worker/worker.h"

namespace moegate {

constexpr double kMostRounds = 1e6;

/// What to run. Everything here that shapes the measurement is stored with the run (to_json), so
/// that --resume and --like need nothing but the store.
struct RunOptions {
  /// Names of suites, or paths of suite files. None is an error of the command.
  std::vector<std::string> suites;
  /// Values that replace a parameter's: --axis, --cache, --launch, --seed. Default: the suite's.
  Axes axes;
  /// Only cases of these operators; empty: of all.
  std::vector<std::string> ops;
  /// Regular expression searched in the case's key; empty: all cases.
  std::string filter;
  /// Regular expression searched in the variant's name; empty: all variants but those of tiles,
  /// which have to be named.
  std::string kernel;
  /// This part, from 0, of so many parts of the cases. Default: all of them in one.
  int shard = 0, shards = 1;
  /// Name in every store of what this is a shard of: 32 hex digits. Empty: it stands alone. Stored
  /// as the run's campaign, not with its options.
  std::string campaign;
  /// Worker processes that measure every row: the unit of evidence.
  int rounds = 3;
  /// Tokens of the largest batch in which batch invariance is asked (worker/batch_invariance.h),
  /// in the first round alone; 0: it is not asked.
  int64_t invariance = 0;
  /// Seconds for one variant on one case, verification included; beyond it the row is a `timeout`.
  double case_timeout_s = 120;
  /// The program, its device, timer and sampling.
  WorkerOptions worker;
  /// Path of the store; made when it is missing.
  std::string db = "results.sqlite";
  /// Name of the run; may be empty. `find_run` takes the newest run of a name.
  std::string label;
  /// Stored beside the run: --tag K=V.
  std::map<std::string, std::string> tags;
  /// What the user typed, for the report; empty: unknown.
  std::string command;
  /// Faults built into every launch (canary.h): slow-downs as shares, dealt out over the rows, and
  /// a factor on every output. Default: none.
  std::vector<double> canary_slow_by;
  double canary_scale = 1;
  /// Of the order of the cases in a round, and of the sides of an A/B: base_leads(). Default: 0; an
  /// A/B and a night draw one.
  uint32_t order_seed = 0;
  /// Until when it may go on; then what is at hand finishes. Default: for ever. Not stored: what it
  /// left out is not in the store.
  Deadline deadline;
  /// Of a night: what one row may take of its time, seconds. A row that takes longer is a
  /// `timeout`, and is not measured again. Default: no share. Not stored.
  double row_share_s = 0;

  /// Seconds after which a row is stopped.
  double row_timeout_s() const {
    return row_share_s > 0 ? std::min(row_share_s, case_timeout_s) : case_timeout_s;
  }
  /// Why, in words, where that was the night's doing; else empty.
  std::string share_text() const {
    const bool by_share = row_share_s > 0 && row_share_s < case_timeout_s;
    return by_share ? "; no row may take more of the night's --budget" : "";
  }
  /// Whether less than the whole of the suites is run, so that absence means nothing.
  bool filtered() const { return narrowed() || shards > 1; }
  /// The same of all shards together.
  bool narrowed() const {
    return !ops.empty() || !filter.empty() || !kernel.empty() || !axes.empty();
  }
  std::string to_json() const;
  /// Throws Error(store) for a text that to_json() has not written.
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

/// The cases of the suites that filter and operators leave, with axes applied, as a backend can run
/// them, equal keys once. Throws Error(usage) for what load_suite() refuses, and for a common
/// parameter that has no such value.
std::vector<Case> load_cases(const RunOptions& options, const Hello& hello);
/// Has the worker's operators look at the cases. Throws Error(usage) for the first that cannot be.
void check_cases(const std::vector<Case>& cases, Worker& worker);
/// The cases, each with the program's variants that --variant leaves: perhaps none.
std::vector<PlannedCase> matching_cases(const RunOptions& options, std::vector<Case> cases,
                                        const Hello& hello);
/// The shard of a case, from 0: a hash of its key, so that a suite with one case more deals out the
/// others as before. Cold and warm of a case, which are compared with each other, are in one.
int shard_of(const Case& c, int shards);
/// Those of --shard.
std::vector<PlannedCase> part_of(std::vector<PlannedCase> planned, const RunOptions& options);
/// Which of load_cases() and of a program's variants run: kernel and shard applied. Throws
/// Error(coverage) when nothing is left, naming what matched nothing; but a campaign's shard may
/// be empty.
Plan select_rows(const RunOptions& options, std::vector<Case> cases, const Hello& hello);
/// Has the worker look at the planned cases once more, as they are on its device (block = tuned).
/// Throws Error(usage) for the first that cannot be there.
void check_on_device(const Plan& plan, Worker& worker);
/// All of these: what a program is to measure, each case looked at once. Throws
/// Error(usage, coverage).
Plan make_plan(const RunOptions& options, Worker& worker);
/// The cases in another order every round, and their variants rotated, so that no case always
/// follows the same neighbour. Both sides of an A/B get the same order.
std::vector<PlannedCase> in_order(std::vector<PlannedCase> planned, uint32_t seed, int round);
/// Any but 0.
uint32_t draw_order_seed();
/// The plan with one variant per case and factor on its ceilings, for what asks about the ceilings
/// rather than the variants: the operator's yardstick first, none that does not support the case.
/// Cases that no variant supports are left out.
Plan one_per_tolerance(Plan plan, Worker& worker);

}  // namespace moegate
