// SPDX-License-Identifier: Apache-2.0
// When a variant has been sampled enough, and what its samples are summed up to: protocol 1's
// stopping rule and its level, and whether the result is `noisy` or `bad_timer`. A row has the
// worst status of its processes (judge/evidence.cc). A host result without a quiet launch is
// `bad_timer`, and read as `noisy` (Result::judged_status()). Pure.
#pragma once

#include <vector>

#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// Version of what is measured and how (harness/README.md). Results of different protocols are
/// never compared.
constexpr int kProtocol = 1;

/// How many samples, and when to stop.
struct Sampling {
  int min_samples = 200;
  int max_samples = 2000;
  double precision = 0;   // stop when the 95 % interval of the judged quantity is within ± this
                          // share; 0: 0.5 % on a GPU, 2 % on the host
  double budget_s = 0.5;  // wall clock for one variant of one case, warm-up included
};

/// Samples come in batches. After each one: go on, or stop because they are precise enough or
/// because their time or number is spent.
class StoppingRule {
 public:
  StoppingRule(const Sampling& sampling, Backend backend);

  /// Samples until the next look at the clock, where those so far took a mean of `sample_s`
  /// seconds each (0: there are none): some 100, of quick launches as many as 12 ms hold, 400 at
  /// most. `random` in [0, 1): a quarter more or less, so that no launch can know that it is the
  /// last before its outputs are compared. At least `least`, else at most what `taken` ones leave
  /// of max_samples.
  int next_batch(int taken, int least, double sample_s, double random) const;

  /// Whether the time (seconds since the variant's beginning) or the number is spent.
  bool is_spent(int taken, double seconds) const;
  /// Whether so many may be summed up: min_samples of them; once all is spent, 50 have an interval
  /// that can be trusted.
  bool are_enough(int samples, bool spent) const;
  /// Whether a summary's interval is narrow enough.
  bool is_precise(const Result& summary) const;
  /// Makes a summary `noisy` that is not, with the reason.
  void judge_imprecise(Result& summary) const;

 private:
  int enough(bool spent) const;

  Sampling sampling_;
  double wanted_;  // half the width of the interval, as a share
};

/// In MHz; 0 where no sample knows its clock.
double median_clock(const std::vector<Sample>& samples);

/// Half the width of the 95 % interval of what is judged, as a share of it: the median paired ratio
/// where there is one, else the trimmed mean span.
double uncertainty(const Result& result);

/// Fills the latency part of a result from its samples.
void summarise(const std::vector<Sample>& samples, Result& result);
/// Lowers the status of a summarised result with too many invalid samples: noisy where no more than
/// allowed are invalid for another reason than a slow clock, else bad_timer (host: noisy, too).
void judge_samples(bool host, Result& result);
/// Makes a result of the host `noisy` whose threads waited for a core for too large a share of
/// their time: then the ratio itself is not to be trusted.
void judge_interference(double share, Result& result);

}  // namespace moegate
