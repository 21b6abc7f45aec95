// SPDX-License-Identifier: Apache-2.0
// The night: verify, measure, let the canaries fly; then find the baselines and their programs,
// screen the stored numbers, replay the suspects, conclude. The functions stand here and in
// night.cc in that order, and night() calls them in it. A suspect is a case whose latency the
// stored numbers do not settle. Each phase has a share of the night's time, and what it does not use
// is the next one's. Publishing is the caller's.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/canaries.h"
#include "harness/campaign/program.h"
#include "harness/campaign/recording.h"
#include "harness/campaign/why.h"
#include "harness/judge/exit.h"
#include "harness/judge/find_baseline.h"
#include "harness/judge/waivers.h"

namespace moegate {

/// How a stored run is judged.
struct GateRules {
  BaselinePlaces baselines;
  std::vector<Waiver> waivers;
  std::function<Limits(Backend)> limits;
  FailOn fail_on;
  bool require_baseline = false;
  WhyMode why = WhyMode::automatic;
  std::string device;  // that suspects are replayed on; empty: the run's
};

/// The program that a suite's baseline was measured with: its path, or nothing where there is none
/// to be had and the stored numbers have to decide.
using ProgramOf = std::function<std::string(const BaselineHeader&)>;

/// How much time the gate has, and what had none before it.
struct GateTime {
  Deadline until;
  double seconds_per_row = 0;  // that a process of the run took; 0: unknown
  /// The run measured its whole plan but for these rows, whatever the store says. Absent: unknown;
  /// then an absent case of a run that is not complete means nothing.
  std::optional<std::set<CaseId, CaseIdLess>> left_out;
};

/// A stored run and the baselines that it meets.
struct GateInput {
  RunInfo run;
  std::string db;
  Sides sides;
  Expected expected;
  Setting setting;
  std::vector<AbsentShard> absent_shards;
};

/// A run's verdict.
struct Verdict {
  RunInfo run;
  Limits limits = Limits::cuda();
  GateResult result;
  Exit exit = Exit::ok;
};

/// The shards that a merged run lacks, and how to run them.
std::vector<AbsentShard> absent_shards(Store& store, const RunInfo& run);

/// Find: the run's rows and the baselines that its suites meet. Throws Error when one does not
/// compare.
GateInput find_input(Store& store, const std::string& db, int64_t run, const GateRules& rules);

/// What the stored numbers say.
struct Screened {
  GateResult result;
  std::vector<CaseId> suspects;  // the most suspicious first
};

/// Screen: judges by the stored numbers. Cases of the same machine code that are slower by what would
/// fail are among the suspects: what the code reads, or the libraries that it calls, need not be
/// the same.
Screened screen(const GateInput& input);

/// Replay: measures the suspects side by side with their baselines' programs, those of one program
/// together, as many as there is time for. The error rate is that of one family: it is shared out
/// over the programs. `compared` gets what it takes to ask why they differ. Throws Error(usage) where
/// another program than this one measured the run, Error(interrupted).
Replayed replay(Store& store, const GateInput& input, const std::vector<CaseId>& suspects,
                const ProgramOf& program_of, const GateRules& rules, const GateTime& time,
                WorkerSource& source, std::vector<Compared>& compared);

/// Conclude: every case's outcome after the replay, creep and waivers, and the gate's exit code. Where
/// nothing was replayed, that of the screen stands.
Verdict conclude(const GateInput& input, GateResult screened, const Replayed& replayed,
                 const GateRules& rules);

/// Find, screen, replay, conclude, and why replayed rows differ: `moegate gate`.
Verdict gate(Store& store, const std::string& db, int64_t run, const GateRules& rules,
             const ProgramOf& program_of, const GateTime& time, WorkerSource& source);

struct NightOptions {
  std::vector<std::string> suites;   // empty: `nightly` on a GPU, `smoke` on a host
  std::string device;                // as devices_of() reads it, not auto
  std::vector<std::string> kernels;  // WorkerOptions
  Backend backend = Backend::host;   // of the device
  int rounds = 0;                    // 0: 5 on a GPU, where they decide what can be seen; else 3
  std::string out = "out";           // folder of the store and of the kept programs
  double budget_s = 0;               // wall time of all phases; 0: 10 min on a host, 20 on a GPU
  WallClock clock = steady_seconds;
  /// What the night looks at beside what every night does (WorkerOptions::sample_seed), and with
  /// which number of tokens it verifies once more. 0: nothing is drawn.
  uint64_t sample_seed = 0;
  GateRules rules;

  std::string db() const { return out + "/results.sqlite"; }
  std::string artifacts() const { return out + "/artifacts"; }
  double budget() const;
};

/// What the caller hears while a night goes on, and does for it.
struct NightCalls {
  std::function<void(const Tally&)> verified, spoilt, measured;
  std::function<void(const Canaries&)> flown;
  /// A phase ended with an Error; the night may go on.
  std::function<void(const Error&)> failed;
  BuildCommit build;
};

struct Night {
  NightExits exits;
  int64_t run = 0;                 // 0: nothing was stored
  std::vector<std::string> notes;  // a sentence each: what it had no time for; the verdict's, too
  std::optional<Verdict> verdict;  // absent: nothing could be judged

  Exit exit() const { return night_exit(exits); }
};

/// What each phase is to do.
RunOptions verify_options(const NightOptions& options, Task task);
RunOptions run_options(const NightOptions& options, const std::string& now);
/// The correctness suite with a number of tokens that the sample seed draws.
RunOptions drawn_options(const NightOptions& options);
RunOptions canary_options(const NightOptions& options);

/// The whole night. Only an interruption and a run without rows to judge end it early; what a
/// phase's Error means is for Night::exit() to say.
Night night(const NightOptions& options, const NightCalls& calls, WorkerSource& source);

}  // namespace moegate
