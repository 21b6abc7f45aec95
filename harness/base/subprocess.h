// SPDX-License-Identifier: Apache-2.0
// This file runs other programs to their end, ends what they leave behind, and notes a Ctrl-C.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <set>
#include <string>
#include <vector>

namespace moegate {

/// While it lives, the first Ctrl-C, TERM or HUP (which nohup keeps away) ends the run as soon as
/// the row at hand has finished or has been given up (worker.h); a second one kills at once. Either
/// way what was measured is in the store. One guard within another adds nothing.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(InterruptGuard&&) = delete;

  /// Whether one came since the outermost guard was made.
  static bool interrupted();

 private:
  std::array<struct sigaction, 3> old_{};
  void (*old_pipe_)(int) = SIG_DFL;
};

enum class Output {
  capture,         // stdout is returned, stderr dropped
  capture_stdout,  // stdout is returned, stderr goes to stderr
  show,            // both go to stderr, where progress belongs
};

struct Finished {
  int exit = 0;  // 128 + signal for a program that a signal ended
  std::string out;
};

/// Runs a program (found on PATH unless it has a '/') without input. Throws Error(environment) when
/// it cannot be started.
Finished run_program(const std::vector<std::string>& command, Output output);

/// The same with Output::show, for what takes long: in a process group of its own, all of which is
/// ended when InterruptGuard has noted a signal.
int run_interruptible(const std::vector<std::string>& command);

/// From now on, orphans among this process's descendants become its children instead of init's.
/// Lasts as long as the process.
void adopt_orphans();

/// The processes whose parent is this one, ended and not yet waited for included; empty where /proc
/// is not there.
std::set<pid_t> children();

/// Kills and waits for every child that is not in `spared`, and what those leave behind in turn.
void end_children_but(const std::set<pid_t>& spared);

}  // namespace moegate
