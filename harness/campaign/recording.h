// SPDX-License-Identifier: Apache-2.0
// One run being measured into the store: a program, the cases and variants it is to measure, and a
// fresh process of it per round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/progress.h"
#include "harness/campaign/plan.h"
#include "harness/judge/evidence.h"
#include "harness/store/run_lock.h"
#include "harness/store/store.h"

namespace moegate {

struct Failure {
  std::string key, variant, why;
  Status status;
};

/// How a run went.
struct Tally {
  int64_t run = 0;  // 0 when nothing is stored
  DeviceFacts device;
  std::map<Status, int> counts;
  std::vector<Failure> failures;  // wrong, crashed, timeout, bad_timer
  std::map<std::string, std::map<ControlOutcome, int>> controls;  // by name; Task::controls
  std::vector<std::string> notes;  // a sentence each: what a reader of the verdict should know
  std::set<CaseId, CaseIdLess> left_out;  // for want of time: rows without any result
  double seconds_per_row = 0;             // that a process took for a row; 0: none was measured
  bool interrupted = false;
  std::string resume;  // the command that finishes it; empty where there is none

  Exit exit() const;
  void count(const std::string& key, const Result& result, Progress& progress);
};

/// A worker that is started when it is needed: at first, after it died, and after it was retired.
class WorkerSeat {
 public:
  WorkerSeat(WorkerSource& source, const WorkerOptions& options)
      : source_(&source), options_(options) {}
  Worker& worker() {
    if (!worker_ || !worker_->alive()) {
      worker_.reset();  // frees the device before the next one opens it
      worker_ = source_->start(options_);
    }
    return *worker_;
  }
  /// The next use gets a fresh process.
  void retire() { worker_.reset(); }
  /// Clock-throttle reasons, when there is a worker to ask.
  std::string throttle() { return worker_ ? worker_->throttle() : ""; }

 private:
  WorkerSource* source_;
  WorkerOptions options_;
  std::unique_ptr<Worker> worker_;
};

/// A program that has answered, and what it is to measure. No store is needed for it, so that a bad
/// suite leaves none behind.
struct Prepared {
  RunOptions options;
  WorkerSeat seat;
  Plan plan;
};

/// Starts a worker, plans with what it says, and says on stderr why its timer is not the one asked
/// for. Throws Error(usage, coverage, environment, interrupted).
Prepared prepare(const RunOptions& options, WorkerSource& source);
/// Says on stderr why the timer is not the one asked for.
void note_timer(const Hello& hello);

/// Which of `slots` canaries a row gets.
size_t canary_slot(const RowName& row, size_t slots);
/// The canary of a row: strengths are dealt out over the rows, the same ones to the same rows.
Canary canary_of(const RunOptions& options, const RowName& row);

/// Does it; that it was interrupted is no error here, because who calls it looks at InterruptGuard.
void unless_interrupted(const std::function<void()>& step);

class Recording {
 public:
  /// `resumed_by` is the command that takes --resume for its run; empty: none does.
  Recording(Store& store, Prepared prepared, std::string resumed_by = "")
      : store_(store),
        options_(std::move(prepared.options)),
        seat_(std::move(prepared.seat)),
        plan_(std::move(prepared.plan)),
        resumed_by_(std::move(resumed_by)) {}
  /// A run that was begun and not finished is stored as interrupted.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Begins a run; with `resume` > 0 continues that one. Once, before everything else. Throws
  /// Error(usage) when that run was measured in another setting, or another process measures it.
  void begin(int64_t resume);

  int64_t run() const { return tally_.run; }
  const Plan& plan() const { return plan_; }
  const Tally& tally() const { return tally_; }

  /// Measures one round in a fresh process: every row, or those in `only`. What the store has of
  /// this round already is left out, and so is the row at hand when the run is interrupted.
  void round(int round, const std::optional<std::set<RowName>>& only, Progress& progress);
  /// Rows without a result in any round.
  std::set<CaseId, CaseIdLess> left_out() const;
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

  void one(int round, const Case& c, const std::string& variant, Progress& progress);
  Result ask(int round, const Case& c, const std::string& variant, CaseData& data);
  Result ask_again(int round, const Case& c, const std::string& variant, Result died,
                   CaseData& data, Progress& progress);
  bool time_is_up() const { return options_.deadline.passed() && rows_ > 0; }
  bool dies_after(const Ran& before, const Case& c, const std::string& variant);
  void blame(const Ran& before, const std::string& why, Progress& progress);
  void store(const Case& c, const CaseData& data, Result& result);
  void note_cache_pair(const Case& c, const Result& result, const CaseData& data);

  Store& store_;
  const RunOptions options_;
  WorkerSeat seat_;
  const Plan plan_;
  const std::string resumed_by_;
  RunLock lock_;
  Tally tally_;
  bool finished_ = false;
  double seconds_ = 0;  // that the rows took
  int rows_ = 0;        // measured by this object
  bool cut_ = false;    // the time was up in a round
  std::map<std::string, double> ceilings_;
  std::set<std::tuple<int, std::string, std::string>> done_;
  int64_t process_ = 0;
  pid_t pid_ = -1;
  std::optional<Ran> before_;                                 // the last one in that process
  std::map<RowName, std::pair<double, double>> cache_pairs_;  // spans cold and warm
};

/// Writes down what a complete run says of its rows, for histories. Throws Error(store).
void write_down_levels(Store& store, int64_t run);

}  // namespace moegate
