// SPDX-License-Identifier: Apache-2.0
// The flags of what judges: what counts as slower, what fails, and where the verdict goes.
#pragma once

#include <boost/program_options.hpp>

#include <optional>
#include <string>

#include "harness/commands/publish.h"
#include "harness/judge/gate.h"

namespace moegate {

/// --margin --fail-at: shares; empty for the backend's own.
struct LimitOptions {
  std::optional<double> margin, fail_at;

  /// Throws Error(usage) for a case that would fail inside the margin.
  Limits of(Backend backend) const;
};
boost::program_options::options_description limit_flags(LimitOptions& limits);

/// What gate, compare and ab do with what was measured.
struct JudgingOptions {
  LimitOptions limits;
  FailOn fail_on;
  PublishOptions publish;
};
constexpr const char* kDefaultFailOn = "latency,accuracy,coverage,environment";
/// --margin --fail-at --fail-on --format --report --junit --github --verdict; `fail_on` is the
/// default of --fail-on.
boost::program_options::options_description judging_flags(
    JudgingOptions& judging, const std::string& fail_on = kDefaultFailOn);

}  // namespace moegate
