// SPDX-License-Identifier: Apache-2.0
// Which CPUs belong together, and how several processes share them.
#pragma once

#include <filesystem>
#include <vector>

namespace moegate {

using Cpus = std::vector<int>;

/// The CPUs that this process may use, those of one core together, cores of one socket next to each
/// other. What the system does not tell of a CPU makes it a core of its own.
std::vector<Cpus> usable_cores(const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// One share for each of so many processes: whole cores, neighbours, as many for each as can be.
/// Empty shares, which mean all CPUs, where there are fewer cores than processes, or one process.
std::vector<Cpus> cpu_shares(const std::vector<Cpus>& cores, size_t processes);

}  // namespace moegate
