// SPDX-License-Identifier: Apache-2.0
// The night: verify, measure, let the canaries fly; then its gate (night_gate.h). The functions
// stand in night.cc in that order, and night() calls them in it. Each phase has a share of the
// night's time, and what it does not use is the next one's. Publishing is the caller's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/program.h"
#include "harness/campaign/recording.h"
#include "harness/judge/exit.h"
#include "harness/night/night_gate.h"
#include "harness/night/selftest.h"

namespace moegate {

struct NightOptions {
  std::vector<std::string> suites;   // empty: the default ones
  std::string device;                // as devices_of() reads it, not auto
  std::vector<std::string> kernels;  // WorkerOptions
  Backend backend = Backend::host;   // of the device
  int rounds = 0;                    // 0: kNightRounds on a GPU, else kRounds
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
  double row_share_s() const;  // RunOptions: a tenth of the budget, 10 s at least
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

/// What is judged where nobody says: `nightly` on a GPU, `smoke` on a host.
std::vector<std::string> default_suites(Backend backend);

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
