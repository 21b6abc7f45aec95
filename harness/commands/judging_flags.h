// SPDX-License-Identifier: Apache-2.0
// The flags of what judges: what counts as slower, what fails, and where the verdict goes.
#pragma once

#include <optional>
#include <string>

#include "harness/commands/cli.h"
#include "harness/commands/publish.h"
#include "harness/judge/gate.h"

namespace moegate {

/// --margin --fail-at: shares; empty for the backend's own.
struct LimitOptions {
  std::optional<double> margin, fail_at;

  /// Throws Error(usage) for a case that would fail inside the margin.
  Limits of(Backend backend) const;
};
Flags limit_flags(LimitOptions& limits);

/// What gate and ab do with what was measured.
struct JudgingOptions {
  LimitOptions limits;
  FailOn fail_on;
  PublishOptions publish;
};
constexpr const char* kDefaultFailOn = "latency,accuracy,coverage,environment";
/// --fail-on --format --out --github, then --margin --fail-at; `fail_on` is the default of --fail-on.
Flags judging_flags(JudgingOptions& judging, const char* fail_on = kDefaultFailOn);

}  // namespace moegate
