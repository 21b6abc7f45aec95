// SPDX-License-Identifier: Apache-2.0
#include "harness/base/cpus.h"

#include <sched.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>

namespace moegate {
namespace {

/// -1 where there is no such file.
int number_in(const std::filesystem::path& path) {
  std::ifstream in(path);
  int number = -1;
  in >> number;
  return in ? number : -1;
}

}  // namespace

std::vector<Cpus> usable_cores(const std::filesystem::path& topology) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return {};
  std::map<std::pair<int, int>, Cpus> cores;  // by socket and core
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const auto of_cpu = topology / ("cpu" + std::to_string(cpu)) / "topology";
    const int socket = number_in(of_cpu / "physical_package_id");
    const int core = number_in(of_cpu / "core_id");
    // Numbers of cores are not negative: no two CPUs that are unknown share one.
    cores[{socket, core < 0 ? -1 - cpu : core}].push_back(cpu);
  }
  std::vector<Cpus> all;
  for (auto& [place, cpus] : cores) all.push_back(std::move(cpus));
  return all;
}

std::vector<Cpus> cpu_shares(const std::vector<Cpus>& cores, size_t processes) {
  std::vector<Cpus> shares(processes);
  if (processes < 2 || cores.size() < processes) return shares;
  for (size_t i = 0; i < cores.size(); ++i) {
    Cpus& share = shares[i * processes / cores.size()];
    share.insert(share.end(), cores[i].begin(), cores[i].end());
  }
  return shares;
}

}  // namespace moegate
