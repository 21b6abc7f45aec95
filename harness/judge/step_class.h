// SPDX-License-Identifier: Apache-2.0
// What a step in a row's history is of: its code, the environment that makes code of it, the
// benchmark, the machine, or nothing that is known. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/names.h"
#include "harness/values/environment_facts.h"

namespace moegate {

enum class StepClass { code, environment, benchmark, machine, noise };
template <>
inline constexpr std::array kNames<StepClass> = {"code", "environment", "benchmark", "machine",
                                                 "noise"};

/// What a run recorded beside a row's level; empty or 0: unknown.
struct StepPoint {
  std::string code;    // hash of what was launched
  std::string commit;  // and whether it was dirty
  std::string suite;
  std::string facts;      // of the case's data, as text
  std::string sets;       // tag kSetsTag
  std::string yardstick;  // what ratios are to, with its code
  std::string device, driver;
  double sm_mhz = 0;
};

/// The two runs around a step.
struct StepQuestion {
  StepPoint before, after;
  double step = 0;  // logarithm of after over before
  /// Logarithms of what other rows changed by whose code did not change.
  std::vector<double> alike = {};
  /// What the two runs ran with otherwise; absent: one of them stored nothing.
  std::optional<std::vector<EnvironmentChange>> environment = {};
};

struct ClassifiedStep {
  StepClass kind = StepClass::noise;
  std::string why;  // a clause
};

/// In this order: what was compared changed; rows of unchanged code moved alike (half as far at
/// least, in the median of three or more); the row's code changed, which is the environment's doing
/// where the commit did not; device, driver or clock changed; nothing did.
ClassifiedStep classify_step(const StepQuestion& question);

}  // namespace moegate
