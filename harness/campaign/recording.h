// SPDX-License-Identifier: Apache-2.0
// One run being measured into the store: a program, the cases and variants it is to measure, and a
// fresh process of it per round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/notes.h"
#include "harness/campaign/lanes.h"
#include "harness/campaign/plan.h"
#include "harness/campaign/program.h"
#include "harness/judge/evidence.h"
#include "harness/store/store.h"

namespace moegate {

struct Failure {
  std::string key, variant, why;
};

/// The worst that outputs of a name showed and their own rounding does not explain.
struct Graded {
  BeyondRounding measured, allowed;
  bool stated = false;  // that anything is allowed: else only a baseline judges it
};
/// Operator, variant, output.
using GradedName = std::tuple<std::string, std::string, std::string>;

/// Where a variant's first batch was in which a token's output was another than in a smaller one.
struct Broken {
  double tokens = 0, place = 0, share = 0;  // of its elements; tokens 0: there was none
};

struct Tally {
  int64_t run = 0;  // 0 when nothing is stored
  DeviceFacts device;
  std::map<Status, int> counts;
  std::vector<Failure> failures;  // wrong, crashed, timeout, bad_timer
  std::map<std::string, std::map<ControlOutcome, int>> controls;     // by name; Task::controls
  std::map<GradedName, Graded> graded;                               // of check_suites()
  std::map<std::pair<std::string, std::string>, Broken> invariance;  // likewise: operator, variant
  std::vector<std::string> notes;      // a sentence each: what a reader of the verdict should know
  std::set<std::string> said;          // failures that were noted: once for all rounds
  std::set<std::string> never_unseen;  // operators that a note says it of (kUnseenMetric is 0)
  KernelFiles kernels;                 // from elsewhere
  std::set<CaseId, CaseIdLess> left_out;  // for want of time: rows without any result
  size_t gpus = 1;                        // that worked at the same time
  size_t lost = 0;                        // of them, those that could not be opened any more
  double seconds_per_row = 0;             // of wall time, of one round; 0: none was measured
  bool interrupted = false;
  std::string resume;  // the command that finishes it; empty where there is none

  Exit exit() const;
  void count(const std::string& key, const Result& result, Progress& progress);

 private:
  void note_unseen(const std::string& key, const Result& result, Progress& progress);
};

/// A program that has answered, and its plan. No store yet: a bad suite must leave none behind.
struct Prepared {
  RunOptions options;
  Lanes lanes;
  Plan plan;
  KernelFiles kernels;  // from elsewhere, as they were loaded
};

/// Several devices report in any order; one in that of its cases, which stays.
void sort_failures(Tally& tally);

/// Does it; that it was interrupted is no error here, because who calls it looks at InterruptGuard.
void unless_interrupted(const std::function<void()>& step);

class Recording {
 public:
  /// `resumed_by` is the command that takes --resume for its run; empty: none does.
  Recording(Store& store, Prepared prepared, std::string resumed_by = "")
      : store_(store),
        options_(std::move(prepared.options)),
        lanes_(std::move(prepared.lanes)),
        at_(lanes_.size()),
        plan_(std::move(prepared.plan)),
        resumed_by_(std::move(resumed_by)) {
    tally_.kernels = std::move(prepared.kernels);
  }
  /// A run that was begun and not finished is stored as interrupted.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Begins a run; with `resume` > 0 continues that one. So it does with what the store has of this
  /// shard of a campaign, unless that was on another device. Once, before everything else. Throws
  /// Error(usage) when that run was measured in another setting, or another process measures it.
  void begin(int64_t resume);
  /// The store has this shard, complete: nothing is left to be done.
  bool whole() const { return whole_; }

  int64_t run() const { return tally_.run; }
  const Plan& plan() const { return plan_; }
  const Dealer& dealer() const { return lanes_.dealer(); }
  const Tally& tally() const { return tally_; }
  /// What the kernels from elsewhere were made of, by path: every file that a process of the rounds
  /// so far had loaded or read at its end. None without --module.
  const std::map<std::string, LoadedFile>& loaded() const { return loaded_; }

  /// Measures one round in a fresh process on each device: every row, or those in `only`. What the
  /// store has of this round already is left out, which is no step of the progress, and so is the
  /// row at hand when the run is interrupted.
  void round(int round, const std::optional<std::set<RowName>>& only, Progress& progress);
  /// Rows without a result in any round, but for those that their variant cannot run.
  std::set<CaseId, CaseIdLess> left_out();
  /// How many of these rows there is time for, with so many rounds of each. 0 rows: unknown so far.
  size_t affordable(size_t rows, int rounds) const {
    return options_.deadline.affords(rows, rounds * tally_.seconds_per_row);
  }
  bool has_run(int round, const RowName& row) const {
    return done_.contains({round, row.first, row.second});
  }
  bool has_timed() const { return rows_ > 0; }
  /// The time was up: no row follows.
  bool is_cut() const { return cut_; }
  /// Says in the store how the run ended: one that was cut short by its deadline is interrupted,
  /// too, so that it is no candidate, and --resume finishes it.
  void finish(bool interrupted);

 private:
  /// A row that was measured in the process at hand.
  struct Ran {
    Case spec;
    std::string variant;
    int64_t process = 0;
    Status status = Status::ok;
  };

  struct Row {
    size_t lane;
    int round;
    const Case& spec;
    const std::string& variant;
  };
  struct Place {
    int64_t process = 0;
    pid_t pid = -1;
    std::optional<Ran> before;  // the last one in that process
  };

  int64_t begun_before(const RunInfo& now);
  void play(size_t lane, int round, const std::optional<std::set<RowName>>& only,
            Progress& progress);
  void play_case(size_t lane, int round, const PlannedCase& planned,
                 const std::optional<std::set<RowName>>& only, Progress& progress);
  void store_environment(int64_t process, const EnvironmentItems& environment);
  void settle_as_stored();
  void say_which_gpu(size_t lane, Result& result);
  void lose(size_t lane, const Error& why, Progress& progress);
  void one(const Row& row, Progress& progress);
  Result ask(const Row& row, CaseData& data);
  Result ask_again(const Row& row, Result died, CaseData& data, Progress& progress);
  bool time_is_up() const { return options_.deadline.passed() && rows_ > 0; }
  bool dies(size_t lane, const std::vector<Request>& requests);
  void blame(const Ran& before, const std::string& why, Progress& progress);
  void store(const Row& row, const CaseData& data, Result& result);
  void note_cache_pair(const Case& c, const Result& result, const CaseData& data);

  Store& store_;
  const RunOptions options_;
  Lanes lanes_;
  std::vector<Place> at_;  // by lane
  const Plan plan_;
  const std::string resumed_by_;
  std::optional<RunLock> lock_;
  Tally tally_;
  bool finished_ = false;
  bool whole_ = false;
  double seconds_ = 0;   // that the rows took
  int rows_ = 0;         // measured by this object
  bool cut_ = false;     // the time was up in a round
  bool behind_ = false;  // a lost device had begun what nobody finished
  std::map<std::string, LoadedFile> loaded_;
  EnvironmentItems environment_;  // of all processes so far
  std::map<std::string, double> ceilings_;
  std::set<std::tuple<int, std::string, std::string>> done_;
  std::set<RowName> stopped_;  // that took more than their share of the night
  std::map<RowName, std::pair<double, double>> cache_pairs_;  // spans cold and warm
};

/// Writes down what a complete run says of its rows, for histories. Throws Error(store).
void write_down_levels(Store& store, int64_t run);

}  // namespace moegate
