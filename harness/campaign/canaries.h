// SPDX-License-Identifier: Apache-2.0
// Faults of a known size, built into this program on purpose: a gate that does not catch them
// cannot be trusted when it is silent.
#pragma once

#include <string>

#include "harness/campaign/ab.h"
#include "harness/campaign/selftest.h"

namespace moegate {

/// How a selftest measures this program against itself.
struct SelftestOptions {
  RunOptions run;  // selection, sampling, device and store
  Backend backend = Backend::cuda;
  std::function<Limits(Backend)> limits;
};

/// This program on both sides, with these slow-downs dealt out over the rows of the head; none: an
/// A/A.
AbOptions self_against_self(const RunOptions& run, const std::vector<double>& injected);

/// run_ab(), where an interruption is an Error.
Comparison measure_self(Store& store, const AbOptions& ab, const SelftestOptions& options,
                        WorkerSource& source);

struct Canaries {
  double slow_by = 0;   // the built-in slow-down, as a share
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

/// A slow-down (5 % on a GPU, a factor of 2 on a host) and outputs times 1.05. Stores the
/// calibration of the first.
Canaries fly_canaries(Store& store, const SelftestOptions& options, WorkerSource& source);

}  // namespace moegate
