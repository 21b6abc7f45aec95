// SPDX-License-Identifier: Apache-2.0
// The options of a run, and their table. A row spells an option once: its flag, its key in the
// stored JSON, its member. With the worker's (worker/worker.h) it is all that a run can be told.
// Then what --shard and --campaign say, and the commands that repeat a run or a row.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/deadline.h"
#include "harness/campaign/suite.h"
#include "harness/values/case.h"
#include "harness/values/conditions.h"
#include "harness/values/run.h"
#include "harness/worker/worker.h"

namespace moegate {

constexpr double kMostRounds = 1e6;

/// Rounds where nobody says how many: of `run`, `tune` and a night on a host; of a night on a GPU,
/// where they decide what can be seen; of `tune --check`, after a first one that measures all. A
/// profile takes one, and ab, bisect, selftest inject and the replays of a gate those of ReplayPlan
/// (judge/replay_rule.h). Canaries take 6 pairs (night/selftest.h); selftest aa asks for --rounds.
inline constexpr int kRounds = 3, kNightRounds = 5, kCheckRounds = 6;

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
  /// Regular expression searched in the variant's name, by matching_cases() of plan.h; empty: all
  /// variants but those of tiles, which have to be named.
  std::string variant;
  /// This part, from 0, of so many parts of the cases. Default: all of them in one.
  int shard = 0, shards = 1;
  /// Name in every store of what this is a shard of: 32 hex digits. Empty: it stands alone. Stored
  /// as the run's campaign, not with its options.
  std::string campaign;
  /// Worker processes that measure every row: the unit of evidence.
  int rounds = kRounds;
  /// Tokens of the largest batch in which batch invariance is asked (worker/batch_invariance.h),
  /// in the first round alone; 0: it is not asked.
  int64_t invariance = 0;
  /// Seconds for one variant on one case, verification included; beyond it the row is a `timeout`
  /// (row_time()).
  double case_timeout_s = 120;
  WorkerOptions worker;
  /// Path of the store; made when it is missing.
  std::string db = "results.sqlite";
  /// Name of the run; may be empty. `find_run` takes the newest run of a name.
  std::string label;
  /// Stored beside the run: --tag K=V.
  std::map<std::string, std::string> tags;
  /// What the user typed, for the report; empty: unknown.
  std::string command;
  /// Faults built in (canary.h): slow-downs, shares dealt out over the rows; a factor on outputs.
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

  RowTime row_time() const {
    constexpr double kFirstLaunch = 600, kShares = 3;
    const bool by_share = row_share_s > 0 && row_share_s < case_timeout_s;
    return {.row_s = by_share ? row_share_s : case_timeout_s,
            // A night's phases are short, and what one compiled is in the next one's caches.
            .first_launch_s =
                std::min(kFirstLaunch, row_share_s > 0 ? kShares * row_share_s : deadline.left()),
            .flag = by_share ? "the night's --budget" : RowTime().flag};
  }
  /// Whether less than the whole of the suites is run, so that absence means nothing.
  bool filtered() const { return narrowed() || shards > 1; }
  /// The same of all shards together.
  bool narrowed() const {
    return !ops.empty() || !filter.empty() || !variant.empty() || !axes.empty();
  }
  std::string to_json() const;
  /// Throws Error(store) for a text that to_json() has not written.
  void from_json(const std::string& text);
};

/// The rows of what is not the worker's. A row without a key is another spelling of an axis.
std::span<const Option<RunOptions>> run_options();

/// Calls `does(row, object)` for each row of both tables with the options that the row is of.
template <class Run, class F>
void for_each_option(Run& run, F&& does) {
  for (const auto& row : run_options()) does(row, run);
  for (const auto& row : worker_options()) does(row, run.worker);
}

/// Flags that repeat the options of a group (empty: all): " --suite tiny --rounds 3".
std::string repeating_flags(const RunOptions& run, const std::string& group);

/// Gives a parameter its values. Throws Error(usage) naming the flag when it has some already.
void set_axis(RunOptions& run, const char* flag, const std::string& name,
              std::vector<std::string> values);

/// Splits "a=b" for --axis and --tag. Throws Error(usage) naming the flag.
std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text);
/// Splits at commas. An empty part is an Error(usage) naming the flag.
std::vector<std::string> parse_list(const std::string& flag, const std::string& text);

// What --device says.

/// "cuda:0,1" and "cuda:0,cuda:1" are {"cuda:0", "cuda:1"}, "host" is {"host"}, be they there or
/// not. Throws Error(usage) for a list that names a GPU twice, or what is no numbered GPU.
std::vector<std::string> devices_of(const std::string& spec);

/// As short as it can be typed: "cuda:0,1".
std::string device_list(const std::vector<std::string>& devices);

/// The number of "cuda:1", which devices_of() has read from a list.
int gpu_number(const std::string& device);

// What --shard and --campaign say: which part of the cases, and of what it is a part. Both can be
// read from the environment of a task of a Slurm job array.

/// As environment() of base: the value of a variable, empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The shard, from 0, and of how many: of "K/N" with K from 1, or of "slurm", the place of this
/// task in its job array. Throws Error(usage) for anything else, outside of a job array, and for an
/// array with gaps, whose tasks are not all shards.
std::pair<int, int> parse_shard(const std::string& text, const Environment& environment);

/// A uuid as 32 hex digits; of "slurm" one that this job array alone has. Throws Error(usage).
std::string parse_campaign(const std::string& text, const Environment& environment);

// What to type to do again what a run's options say: measure it, or record it by one of NVIDIA's
// profilers. Every word is quoted for a shell, because stores and suites come from elsewhere.

/// `moegate run` with all that shapes the measurement.
std::string run_command(const RunOptions& options);

/// What to type to measure a stored run again, all of it where it is a shard's, into `db`. Made
/// from its options, as for a row: the command that a store holds may be anybody's. It is taken
/// where options are no run's of `moegate run` (an A/B, say), but only if a shell takes it for
/// nothing else than words of moegate's; else there is none.
std::string repeat_command(const RunInfo& run, const std::string& db);

/// How to run a shard of a campaign that is absent, by what the run of the others states, into a
/// store that is still to be named. Empty where its options are another program's.
std::string absent_shard_command(const RunInfo& run, int shard);

/// What records the launches of the options' rows under Nsight Systems, into `report`.nsys-rep. Its
/// timeline has a range "key variant" for each row; what is outside of them is verification.
std::string nsys_command(const RunOptions& options, const std::string& report);

/// What has Nsight Compute look at the kernels of these launches, and at no others, into
/// `report`.ncu-rep: every counter it has, at the clock that the GPU runs at. It replays each
/// kernel by itself, with cold caches unless `cache` is warm, also the second of a chain.
std::string ncu_command(const RunOptions& options, Cache cache, const std::string& report);

}  // namespace moegate
