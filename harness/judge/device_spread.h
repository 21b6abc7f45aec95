// SPDX-License-Identifier: Apache-2.0
// How two devices of one class differ, from the rows that were measured on both. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/judge/evidence.h"

namespace moegate {

struct OnTwoDevices {
  double log_ratio = 0;  // head's device to base's
  double se = 0;         // of that, from what its processes spread by
  bool same_code = false;
};

/// What is known about the difference of two devices.
struct DeviceSpread {
  double shift = 0;           // of all rows, as a log: head's device to base's
  double sd = 0;              // of a row's own difference, as a log, beside its processes' noise
  double df = 0;              // of sd, for a test
  size_t rows = 0;            // that it was estimated from
  bool of_same_code = false;  // all of them launched the same machine code on both

  /// "the devices differ by -0.2 %, a row by 0.7 % more or less, as 412 rows of the same code show"
  std::string text() const;
};

/// Estimated by medians, so that what a change made slower does not count: from the rows of the
/// same code, if they are twenty or more, else from all. Then the shift is held within `margin`,
/// because a common change of more than what is looked for need not be the device's. Absent for
/// fewer than twenty rows.
std::optional<DeviceSpread> device_spread(std::span<const OnTwoDevices> rows, double margin);

std::optional<DeviceSpread> device_spread(const Sides& base, const Sides& head, double margin);

}  // namespace moegate
