// SPDX-License-Identifier: Apache-2.0
// Faults of a known size, built into this program on purpose: a gate that does not catch them
// cannot be trusted when it is silent.
#pragma once

#include <string>

#include "harness/night/ab.h"
#include "harness/night/selftest.h"

namespace moegate {

/// How a selftest measures this program against itself.
struct SelftestOptions {
  RunOptions run;  // selection, sampling, device and store
  Backend backend = Backend::cuda;
  std::function<Limits(Backend)> limits;
  double seconds_per_row = 0;  // that a process takes, as far as is known; 0: unknown
};

/// This program on both sides, with these slow-downs dealt out over the rows of the head; none: an
/// A/A.
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

}  // namespace moegate
