// SPDX-License-Identifier: Apache-2.0
// The process of a worker: started with a pipe each way, and buried. Knows no message.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/worker/passed_on.h"

namespace moegate {

class Child {
 public:
  /// Starts `moegate worker` of a program, bound to these CPUs, none: to all, with these variables in
  /// place of this process's. Throws Error(environment) where there are no pipes or no processes to be
  /// had.
  Child(const std::string& program, const std::vector<int>& cpus,
        const std::map<std::string, std::string>& variables = {});
  /// Ends it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool alive() const { return pid_ > 0; }
  int to() const { return to_; }
  int from() const { return from_; }

  /// Reaps the process, ends what it left behind, and says how it ended.
  std::string bury(bool kill_first);

 private:
  std::set<pid_t> before_;  // children of the runner when this one was started
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::optional<PassedOn> printed_;  // while it lives
};

}  // namespace moegate
