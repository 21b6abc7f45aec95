// SPDX-License-Identifier: Apache-2.0
// Judges every case of a run against a baseline or another run, and decides the exit code. Pure:
// knows neither stores nor files nor how a verdict is printed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/cause/cause.h"
#include "harness/judge/device_spread.h"
#include "harness/judge/evidence.h"
#include "harness/judge/rules.h"
#include "harness/values/environment_facts.h"

namespace moegate {

/// What each of the two sides is.
struct Setting {
  Limits limits;
  bool host = false;
  bool partial = false;    // less than the whole suites were run: an absent case is not missing
  bool trust_code = true;  // the same machine code, launched alike, is not judged for latency
  bool paired = false;     // both sides took part in the same rounds
};

/// What came out of measuring cases again, side by side with their base.
struct Replayed {
  std::map<CaseId, Judgement, CaseIdLess> judged;
  std::set<CaseId, CaseIdLess> identical;  // both sides launched the same machine code
  std::vector<std::string> notes;          // a sentence each: what happened while it was measured
  std::set<CaseId, CaseIdLess> left_out;   // for want of time, or by the interruption
  /// What one of them would have taken: in the run, and in the replay; 0: unknown.
  double measuring_s = 0, replaying_s = 0;
  std::string unable;  // why nothing could be replayed that had to be; empty: it could
  /// How outputs are worse than the base's on the same inputs; absent or empty: they are not.
  std::map<CaseId, std::string, CaseIdLess> worse = {};
  std::set<CaseId, CaseIdLess> compared = {};  // outputs on the same inputs
  /// In what the operators' questions differ (look.h); these rows have no judgement.
  std::map<CaseId, std::string, CaseIdLess> other_questions = {};
  bool interrupted = false;  // by a signal, and not for want of time

  /// Its pairs are not all there because of the interruption: no rule may judge it.
  bool cut_short(const CaseId& id) const { return interrupted && left_out.contains(id); }
  /// Nothing was measured again, and nothing happened: the numbers at hand stand as they
  /// were judged.
  bool nothing() const {
    return judged.empty() && identical.empty() && notes.empty() && left_out.empty() &&
           unable.empty() && worse.empty() && compared.empty() && other_questions.empty();
  }
};

struct Expectation {
  /// "baselines/nvidia-h200/nightly.tsv" or "run 3 'main'"; empty: there is none.
  std::string against;
  /// One sentence for the report; empty when there is nothing to say.
  std::string note;
  bool other_device = false;
  Sides sides;
  /// Of other_device, as far as the rows show it.
  std::optional<DeviceSpread> between = {};
  /// The run's program measured it, file by file, and the run has no kernels from elsewhere.
  bool same_program = false;
  /// An earlier run began a candidate, and this one's rows did not make it grow.
  bool stalled = false;
};

struct CaseVerdict {
  CaseId id;
  std::string against;
  Found found;                      // all that was found of it, by find()
  Outcome outcome = Outcome::pass;  // what the first of that says
  std::string why;
  /// Compared by its own time though ratios were measured (Quantity::time): the numbers are
  /// microseconds, and only rounds of both sides decide.
  bool by_time = false;
  bool yardstick = false;  // what ratios are to: that it is unchanged decides nothing
  /// The numbers at hand cannot settle it, whatever they say of its latency: worth a replay.
  bool open = false;
  double base = 0, head = 0;         // microseconds or ratios; 0: none
  std::optional<Judgement> latency;  // absent where latency was not judged
  int stage = 0;                     // 0: latency not judged, 1: on stored numbers, 2: replayed
  std::string waiver;                // id of the waiver that applies; empty for none
  bool drift = false;                // wrong only compared with the baseline: a larger error
  Status status = Status::ok;        // of the run's worst process
  bool same_code = false;            // both sides are known to have launched the same machine code
  bool off = false;                  // and was judged for latency all the same: it was too far off
  double creep = 0;  // slower than its anchor by at least this share, where that is known
  std::optional<Cause> cause = {};  // why it differs, where that was asked
};

/// A part of the run's campaign that it lacks: it did not run, did not end, or was not merged.
struct AbsentShard {
  int shard = 0, shards = 0;  // from 1, of so many
  std::string command;        // runs it
};

struct GateResult {
  std::vector<CaseVerdict> cases;
  std::vector<AbsentShard> absent_shards;  // any is Exit::coverage
  /// A sentence each: what was removed, renamed, loosened or edited, so that this judges less or
  /// otherwise than the base's would.
  std::vector<std::string> changed;
  std::map<std::string, Expectation> suites;  // without their sides
  std::map<Outcome, int> counts;
  int not_judged = 0;  // new rows of suites that there is something to compare with
  int blind = 0;
  int unsupported = 0;  // stated by the variant, expected by nobody
  int not_run = 0;      // in the baseline, outside the run's selection
  /// Over the cases judged for latency, as a share: a common shift is no single regression.
  double median_change = 0;
  int judged = 0;                     // rows whose latency was judged
  std::vector<std::string> notes;     // a sentence each: what happened while measuring
  std::vector<std::string> left_out;  // rows that there was no time for
  bool interrupted = false;           // they are what the interruption left out
  double more_s = 0;   // about what would have decided them; 0: there are none, or nobody knows
  std::string unable;  // why the gate could not see; is Exit::environment. Empty: it could
  std::vector<std::string> waiver_notes;     // a sentence each: used, or not needed
  std::vector<std::string> waiver_problems;  // a sentence each: any is Exit::waiver
  /// What both sides ran kernels from elsewhere with, where that differs.
  std::vector<EnvironmentChange> environment;

  int count(Outcome outcome) const {
    const int* rows = find_or_null(counts, outcome);
    return rows ? *rows : 0;
  }
};

/// Adds what was found of a row: its outcome follows, and `why` becomes its reason, what was found
/// before included where it still says something. Nothing else gives a row an outcome.
void find(CaseVerdict& v, Rule rule, std::string why);

/// A row that the run lacks, of which this is found.
CaseVerdict unmeasured(const CaseId& id, const std::string& against, Rule rule, std::string why);

/// What its latency came to; inconclusive where there was no time to replay it.
Outcome latency_outcome(const CaseVerdict& v);
/// Whether its latency fails it, whatever its outputs do; also where a waiver lets it.
bool is_slower(const CaseVerdict& v);

/// "environment: triton 3.5.1 -> 3.6.0; 3 of 4 rows ran other code"; empty where nothing differs.
std::string environment_sentence(const GateResult& result);

/// Has rows that differ say so, where nothing but the environment differs: one item is a cause, of
/// several none is known to be it.
void name_environment(GateResult& result);

/// Of its latency; equal where the row passed by that, or launched what the base launched.
Effect effect_of(const CaseVerdict& v);

/// Adds rows that the base's suites have and the head's lack: Outcome::missing.
void add_lacking(GateResult& result, const std::vector<CaseId>& lacking);

/// Sets `counts` and `not_judged` from the cases, after something changed an outcome.
void count_outcomes(GateResult& result);

/// Expectations by suite; a suite without one has only new rows. What was replayed is decided by
/// that and not by the numbers at hand.
GateResult judge(const Sides& head, const std::map<std::string, Expectation>& expected,
                 const Setting& setting, const Replayed& replayed = {});

/// From which difference on, as a share, a row of the same machine code is measured all the same:
/// what the code reads, or the libraries that it calls, need not be the same. A few rounds differ
/// by more than stored levels do, and a machine that was disturbed by more still.
struct DoubtedFrom {
  double stored, rounds, disturbed;
  explicit DoubtedFrom(const Limits& limits)
      : stored(limits.fail_at), rounds(2 * limits.fail_at), disturbed(2 * limits.blind_at) {}
};

/// Rows whose latency the numbers at hand do not settle, as places in the result's cases:
/// everything judged but not shown equal, and what only compares by time.
std::vector<size_t> unsettled(const GateResult& result);
/// Which rows a gate and a night replay, by the rounds of ReplayPlan (replay_rule.h), as far as
/// there is time and the baseline's program is there, the most suspicious first (run_ab() has a
/// screen in the place of stored numbers):
/// - open ones: compared by time, or off in a way that stored levels do not settle (doubts.h)
/// - those whose latency came out as regressed, improved or inconclusive, or passed with p < 0.05
/// - identical ones that are slower all the same (DoubtedFrom)
std::vector<CaseId> worth_a_replay(const GateResult& result, const Sides& head,
                                   const Limits& limits);

/// Whether the code of both sides, and what it was launched with, is known and equal.
bool same_code(const Side& base, const Side& head);

/// --fail-on
struct FailOn {
  bool latency = true, accuracy = true, coverage = true, environment = true, inconclusive = false;
  bool changed = false;    // inconclusive rows whose machine code is not known to be the same
  bool undecided = false;  // fewer than half of the rows that are not new were decided; a night's
};
/// "latency,accuracy"; throws Error(usage) listing the choices.
FailOn parse_fail_on(const std::string& list);

/// The one exit code: the gravest (exit.h) of what is due. A wrong output fails always.
/// `lacks_baseline`: a blessed baseline was demanded and is not there. FailOn::inconclusive means
/// new rows that were not judged, and undecided() results, too.
Exit decide_exit(const GateResult& result, const FailOn& fail_on, bool lacks_baseline);

/// There was something to compare with, and fewer than half of the rows could be compared with it:
/// the others are inconclusive, new, missing, or were measured in another environment.
bool undecided(const GateResult& result);

/// "FAIL (exit 10): 2 regressed, 3 inconclusive, 52 pass of 57 rows; ..." Exit 0 is PASS,
/// UNDECIDED, or NO BASELINE where no suite has anything to compare with.
std::string sentence(const GateResult& result, Exit exit);

/// Throws Error when two sides do not compare: another class, protocol or flush (usage), another
/// timer (environment: the profiler's timer was not there). Names both values.
void check_comparable(const BaselineHeader& base, const BaselineHeader& head,
                      const std::string& against);

}  // namespace moegate
