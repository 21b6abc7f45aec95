// SPDX-License-Identifier: Apache-2.0
// The gate measured by its own means: an unchanged program against itself must not fail, a known
// slow-down must. Pure: summarises what an A/B decided.
#pragma once

#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/campaign/plan.h"
#include "harness/night/ab.h"

namespace moegate {

/// One row of table `calibration`: the rows of an A/B that had the same slow-down built in.
struct Calibration {
  double injected = 0;  // share
  int rounds = 0;       // process pairs of every row, at least
  int judged = 0;
  int screened = 0;
  int failed = 0;  // called regressed
  int inconclusive = 0;
  double effect = 0;  // mean estimate
  double sd = 0;      // median over rows of the log ratio's deviation between process pairs
  double lambda = 0;  // median z^2 over that of the normal distribution; 1: the error is right
  double mde = 0;     // median
  int blind = 0;
};

/// One per strength of `injected` (as dealt out by canary_slot), in order.
std::vector<Calibration> calibrate(const Comparison& result, const std::vector<double>& injected);

Table calibration_table(const std::vector<Calibration>& calibrations);
/// A line that says what the lambda of an A/A means; empty for an injection.
std::string lambda_text(const Calibration& aa);
/// How many rows can see which slow-down: "below 1 %", "1 to 2 %", ...
Table mde_histogram(const Comparison& result);
/// "topk_sort/… chain3: 6.1 %", of rows that cannot see `blind_at`.
std::vector<std::string> blind_cases(const Comparison& result);

void store_calibration(Store& store, int64_t head_run,
                       const std::vector<Calibration>& calibrations);

// Faults of a known size, built into this program on purpose: a gate that does not catch them
// cannot be trusted when it is silent. Slow-downs are confirmed in 6 pairs of processes.

struct SelftestOptions {
  RunOptions run;  // selection, sampling, device and store
  Backend backend = Backend::cuda;
  std::function<Limits(Backend)> limits;
  double seconds_per_row = 0;  // that a process takes, as far as is known; 0: unknown
};

/// This program on both sides; slow-downs are dealt out over the head's rows. None: an A/A.
AbOptions self_against_self(const RunOptions& run, const std::vector<double>& injected);

/// run_ab(), where an interruption is an Error.
Comparison measure_self(Store& store, PreparedAb prepared, const SelftestOptions& options);

struct Canaries {
  double slow_by = 0;   // the built-in slow-down, as a share
  size_t rows = 0;      // of the selection, whether there was time for them or not
  Calibration slow;     // what the gate made of it
  int seeing = 0;       // rows that could be expected to see it
  double scale = 1;     // the factor on every output
  int scaled_rows = 0;  // rows whose outputs were scaled
  int wrong = 0;        // of them, called wrong
  bool host = false;

  bool caught() const;
  /// Two lines, one a canary; a third where one was missed.
  std::string text() const;
};

/// Outputs times 1.05 and a slow-down (5 % on a GPU, a factor of 2 on a host), of as many rows as
/// run.deadline has time for, but at least one. Stores the calibration of the second.
Canaries fly_canaries(Store& store, const SelftestOptions& options, WorkerSource& source);

// Variants that cheat or break on purpose, each in a process of its own: a harness that measures
// one of them, or calls it something else than its author says, cannot be trusted.

struct TriedSaboteur {
  VariantDescription variant;
  Result result;

  /// A saboteur that was called what it is; an honest variant that was measured.
  bool as_expected() const;
};

/// Runs every variant that states what is to be made of it, and the honest ones of the same
/// operators; leaves out what does not support its case. Throws Error(usage) where this program has
/// no saboteur, Error(interrupted).
std::vector<TriedSaboteur> release_saboteurs(const RunOptions& options, WorkerSource& source);

/// What each does and was called, why, and the exit code of a run in which that happens.
Table saboteur_table(const std::vector<TriedSaboteur>& all);

}  // namespace moegate
