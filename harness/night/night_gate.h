// SPDX-License-Identifier: Apache-2.0
// The gate on a stored run: find the baselines and their programs, screen the stored numbers,
// replay the suspects, conclude. The functions stand here and in night_gate.cc in that order, and
// gate() calls them in it. A suspect is a case whose latency the stored numbers do not settle.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/baseline/find_baseline.h"
#include "harness/baseline/waivers.h"
#include "harness/campaign/program.h"
#include "harness/campaign/recording.h"
#include "harness/night/why.h"

namespace moegate {

struct GateRules {
  BaselinePlaces baselines;
  std::vector<Waiver> waivers;
  std::function<Limits(Backend)> limits;
  FailOn fail_on;
  bool require_baseline = false;
  WhyMode why = WhyMode::automatic;
  std::string device;  // that suspects are replayed on; empty: the run's
  /// Of the run, which a replay loads: named by whoever judges, never taken from a store.
  std::vector<std::string> kernels;
};

/// The program that a suite's baseline was measured with: its path, or nothing where there is none
/// to be had and the stored numbers have to decide.
using ProgramOf = std::function<std::string(const BaselineHeader&)>;

/// How much time the gate has, and what had none before it.
struct GateTime {
  Deadline until;
  double seconds_per_row = 0;  // that a process of the run took; 0: unknown
  double row_share_s = 0;      // RunOptions
  /// The run measured its whole plan but for these rows, whatever the store says. Absent: unknown;
  /// then an absent case of a run that is not complete means nothing.
  std::optional<std::set<CaseId, CaseIdLess>> left_out;
};

struct GateInput {
  RunInfo run;
  std::string db;
  Sides sides;
  Expected expected;
  Setting setting;
  std::vector<EnvironmentChange> environment;  // of its suites' baselines, to the run's
  std::vector<AbsentShard> absent_shards;
};

struct Verdict {
  RunInfo run;
  Limits limits = Limits::cuda();
  GateResult result;
  Exit exit = Exit::ok;
  bool can_be_blessed = false;  // why_unfit() finds nothing
};

/// The shards that a merged run lacks, and how to run them.
std::vector<AbsentShard> absent_shards(Store& store, const RunInfo& run);

/// Find: the run's rows and the baselines that its suites meet. Where time.left_out is known, the
/// run was to measure the whole of its suites. Throws Error when one does not compare.
GateInput find_input(Store& store, const std::string& db, int64_t run, const GateRules& rules,
                     const GateTime& time = {});

/// What the stored numbers say.
struct Screened {
  GateResult result;
  std::vector<CaseId> suspects;  // the most suspicious first
};

/// Screen: judges by the stored numbers; worth_a_replay() says which rows are suspects.
Screened screen_stored(const GateInput& input);

/// Replay: measures the suspects side by side with their baselines' programs, those of one program
/// together, as many as there is time for. The error rate is that of one family: it is shared out
/// over the programs. `compared` gets what it takes to ask why they differ. Throws Error(usage)
/// where another program than this one measured the run, Error(interrupted).
Replayed replay(Store& store, const GateInput& input, const std::vector<CaseId>& suspects,
                const ProgramOf& program_of, const GateRules& rules, const GateTime& time,
                WorkerSource& source, std::vector<Compared>& compared);

/// Conclude: every case's outcome after the replay, creep and waivers, and the gate's exit code.
/// Where nothing was replayed, that of the screen stands.
Verdict conclude(const GateInput& input, GateResult screened, const Replayed& replayed,
                 const GateRules& rules);

/// Find, screen, replay, conclude, and why replayed rows differ: `moegate gate`.
Verdict gate(Store& store, const std::string& db, int64_t run, const GateRules& rules,
             const ProgramOf& program_of, const GateTime& time, WorkerSource& source);

}  // namespace moegate
