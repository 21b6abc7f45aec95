// SPDX-License-Identifier: Apache-2.0
// What kernels of Python cost before their first result, as the report `compile` counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/gate.h"
#include "harness/store/store.h"

namespace moegate {

/// Of a variant in a suite: the most of a run's processes.
struct FirstLaunches {
  std::string suite, variant;
  int cases = 0;
  std::optional<int> modules;  // loaded on the GPU; nothing where nobody counted
  double seconds = 0;          // of all cases together
};

/// By suite and variant; only variants that are compiled where they are launched.
std::vector<FirstLaunches> first_launches(Store& store, int64_t run);

/// Notes where a variant's modules differ in two runs, or its seconds more than doubled, by more
/// than 5 s. Nothing fails by it.
void note_first_launches(Store& store, int64_t base, int64_t head, GateResult& result);

}  // namespace moegate
