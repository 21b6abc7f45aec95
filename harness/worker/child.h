// SPDX-License-Identifier: Apache-2.0
// The process of a worker: started with a pipe each way, and buried. Knows no message.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace moegate {

/// What a worker prints, passed on to standard error as text: a kernel's words are no commands to a
/// terminal or to the machinery that reads a CI job's log.
class PassedOn {
 public:
  /// Reads `fd`, which becomes its own, line by line until nobody can write any more. Throws
  /// Error(environment) where there is no pipe to be had.
  explicit PassedOn(int fd);
  /// Passes on what is there; whoever still holds the other end writes in vain.
  ~PassedOn();
  PassedOn(PassedOn&&) = delete;

 private:
  void pass_on();
  /// What can be read now. False: there will be no more.
  bool take();
  void say_lines();

  const int fd_;
  int end_[2];        // closed at one end: the other is told
  std::string text_;  // that has no line end yet
  std::thread reader_;
};

class Child {
 public:
  /// Starts `moegate worker` of a program, bound to these CPUs, none: to all, with these variables
  /// in place of this process's, without those that are empty. Throws Error(environment) where
  /// there are no pipes or no processes to be had.
  Child(const std::string& program, const std::vector<int>& cpus,
        const std::map<std::string, std::string>& variables = {});
  ~Child();
  Child(Child&&) = delete;

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
