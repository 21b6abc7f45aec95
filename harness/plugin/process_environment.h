// SPDX-License-Identifier: Apache-2.0
// What this process runs kernels from elsewhere with: libraries of CUDA that are mapped, variables
// that kernels and their packages read, and what an interpreter knows of itself.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/values/environment_facts.h"

namespace moegate {

/// Names of variables that the user stated for this process: they are told whatever they are
/// called, and count whatever they hold.
void state_variables(std::vector<std::string> names);

/// Further items, by whoever knows of them; asked whenever the environment is.
void ask_for_environment(std::function<EnvironmentItems()> items);

/// All of it up to now: what a launch imports is there after it. What is read to tell it counts as
/// opened by nobody.
EnvironmentItems process_environment();

/// Of a process that was started with these variables, those that are told. A text that names
/// folders is told and does not count; of a secret the digest is told, and never its text. Pure.
EnvironmentItems told_variables(const std::map<std::string, std::string>& variables,
                                const std::vector<std::string>& stated);

}  // namespace moegate
