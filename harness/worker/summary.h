// SPDX-License-Identifier: Apache-2.0
// What samples come to, as a result. Pure.
#pragma once

#include <vector>

#include "harness/values/result.h"

namespace moegate {

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

}  // namespace moegate
