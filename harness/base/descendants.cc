// SPDX-License-Identifier: Apache-2.0
#include "harness/base/descendants.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// 0 for a process that is gone.
pid_t parent_of(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string line;
  std::getline(in, line);
  const size_t name_end = line.rfind(')');  // a name may hold anything
  constexpr size_t kState = 4;              // ") S "
  if (name_end == std::string::npos || line.size() < name_end + kState) return 0;
  pid_t parent = 0;
  std::from_chars(line.data() + name_end + kState, line.data() + line.size(), parent);
  return parent;
}

}  // namespace

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid > 0 && parent_of(at->path()) == getpid()) found.insert(pid);
  }
  return found;
}

void end_children_but(const std::set<pid_t>& spared) {
  constexpr int kGenerations = 10;  // what forks faster than it is killed is not chased for ever
  for (int i = 0; i < kGenerations; ++i) {
    bool any = false;
    for (const pid_t child : children()) {
      if (spared.count(child) > 0) continue;
      any = true;
      kill(child, SIGKILL);
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (!any) return;
  }
}

}  // namespace moegate
