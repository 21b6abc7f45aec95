// SPDX-License-Identifier: Apache-2.0
// A plan to be looked at, also one for a GPU on a machine that has none.
#pragma once

#include <memory>

#include "harness/campaign/plan.h"

namespace moegate {

/// Who answers what there is to run.
struct Planner {
  std::unique_ptr<Worker> worker;
  /// Of the worker; where its device is not the one meant, of what this program has for that one.
  Hello hello;
  bool elsewhere = false;
};

/// Starts a worker for --dry-run and `list cases`. Where `options` name a GPU and this machine has
/// none, the worker is on the host and says nothing of the GPU: standard error says so.
Planner planner_of(RunOptions options);

/// make_plan() by a planner; what only the device itself could refuse is not looked at elsewhere.
Plan plan_by(const Planner& planner, const RunOptions& options);

}  // namespace moegate
