// SPDX-License-Identifier: Apache-2.0
#include "harness/base/environment.h"

#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "harness/base/error.h"

namespace moegate {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

namespace fs = std::filesystem;
namespace {

bool holds_data(const fs::path& folder) {
  std::error_code ignored;  // an unreadable folder is not ours
  return fs::is_directory(folder / "suites", ignored) &&
         fs::is_directory(folder / "reports", ignored);
}

/// -1 where there is no such file.
int number_in(const std::filesystem::path& path) {
  std::ifstream in(path);
  int number = -1;
  in >> number;
  return in ? number : -1;
}

}  // namespace

fs::path place_of(const fs::path& program) {
  std::error_code error;
  const bool replaced = fs::is_symlink(program, error) && !fs::exists(program, error);
  return replaced ? fs::read_symlink(program, error) : fs::weakly_canonical(program, error);
}

fs::path home_of(const fs::path& program) {
  for (fs::path folder = place_of(program).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
    if (folder == folder.root_path()) break;
  }
  return {};
}

fs::path home() {
  if (const std::string set = environment("MOEGATE_HOME"); !set.empty()) {
    if (holds_data(set)) return fs::path(set);
    give_up(Exit::environment,
            "MOEGATE_HOME = '{}' does not hold suites/ and reports/; set it to the source tree or "
            "the installation prefix, or unset it",
            set);
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path found = home_of(program);
  if (!found.empty()) return found;
  give_up(Exit::environment,
          "no folder above '{}' holds suites/ and reports/; set MOEGATE_HOME to the source tree or "
          "the installation prefix",
          program.string());
}

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
