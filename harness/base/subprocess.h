// SPDX-License-Identifier: Apache-2.0
// Another program, run to its end.
#pragma once

#include <string>
#include <vector>

namespace moegate {

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

}  // namespace moegate
