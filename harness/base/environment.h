// SPDX-License-Identifier: Apache-2.0
// This file says what surrounds the process: its variables, the folder of the tool's data, and the
// CPUs that it may use.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moegate {

/// The value of an environment variable; empty where it is not set, which is the same to every
/// reader here.
std::string environment(const char* name);

// Where the tool's data lives: the folder that holds suites/, reports/ and baselines/.

/// MOEGATE_HOME if set, else the nearest folder above the program that holds suites/ and reports/:
/// the source tree for a build inside it, the prefix for an installed one. Throws
/// Error(environment).
std::filesystem::path home();

/// Where a program's file lies, or lay: /proc/self/exe of one that was replaced while it runs.
std::filesystem::path place_of(const std::filesystem::path& program);

/// As home(), of another program: what lies above it; MOEGATE_HOME does not count. Empty where
/// nothing does.
std::filesystem::path home_of(const std::filesystem::path& program);

using Cpus = std::vector<int>;

/// The CPUs that this process may use, those of one core together, cores of one socket next to each
/// other. What the system does not tell of a CPU makes it a core of its own.
std::vector<Cpus> usable_cores(const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// One share for each of so many processes: whole cores, neighbours, as many for each as can be.
/// Empty shares, which mean all CPUs, where there are fewer cores than processes, or one process.
std::vector<Cpus> cpu_shares(const std::vector<Cpus>& cores, size_t processes);

}  // namespace moegate
