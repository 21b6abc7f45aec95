// SPDX-License-Identifier: Apache-2.0
// Deliberate faults of a known size, built around any variant, so that the gate can be shown to
// catch them: a delay behind the launch, or outputs that are off by a factor.
#pragma once

#include <memory>

#include "harness/kernel/kernel.h"

namespace moegate {

/// What to do to every launch of a variant. On a GPU a delay is a kernel behind the launch, so a
/// side without delay that is to be compared asks for one of 0.
struct Canary {
  double slow_by = -1;  // share of the launch's own time, 0.05 for 5 %; negative: no delay at all
  double scale = 1;     // factor on every floating output

  bool delays() const { return slow_by >= 0; }
  bool asked() const { return delays() || scale != 1; }
};

/// A variant with a canary in it. Measure it once without delay, tell calibrate() what that gave,
/// and measure again. Lives as long as launches of variant() may come.
class CanaryVariant {
 public:
  CanaryVariant(const Variant& inner, const Canary& canary, const DeviceFacts& device);

  const Variant& variant() const { return variant_; }
  /// Sets the delay from the span of the variant without it, at an SM clock.
  void calibrate(double span_ns, double sm_mhz);

 private:
  Canary canary_;
  bool host_;
  std::shared_ptr<int64_t> delay_steps_ = std::make_shared<int64_t>(0);  // GPU: of calibrate()
  Variant variant_;
};

}  // namespace moegate
