// SPDX-License-Identifier: Apache-2.0
// Why a row became slower or faster: two looks at it -> one sentence, with the numbers behind it. Pure
// functions over stored values; knows no device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// All that is known of one side of a row beside its levels; what was not looked at is absent.
struct Look {
  std::optional<Result>
      measured;  // of a timed process: kernels with times and gaps, path, code, clock
  std::optional<Result> counted;  // Task::counters
  std::optional<Result> stalled;  // Task::stalls
  std::optional<Result> metered;  // Task::energy
  DeviceFacts device;
};

/// In the order in which they are looked for: the first that applies is the sentence.
enum class CauseKind { launches, resources, work, rate, gaps, clock, nothing, unknown };
const char* name_of(CauseKind kind);

/// One number of both sides.
struct CauseNumber {
  std::string name, unit;  // "dram__bytes_read.sum", "bytes"; of a kernel: "name [kernel]"
  double base = 0, head = 0;
};

struct Cause {
  CauseKind kind = CauseKind::unknown;
  std::string sentence;              // "DRAM bytes read +12 % (16.8 -> 18.8 MB)"
  std::vector<CauseNumber> numbers;  // all that both sides state, those of the sentence first
};

/// `effect`: how much slower the head is, as a share; below 0: faster. It says which direction of a
/// difference can be a cause.
Cause explain(const Look& base, const Look& head, double effect);

}  // namespace moegate
