// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during a measurement.
#pragma once

#include <csignal>

namespace moegate {

/// While it lives, the first Ctrl-C, TERM or HUP (which nohup keeps away) ends the run as soon as
/// the row at hand has finished or has been given up (worker.h); a second one kills at once. Either
/// way what was measured is in the store. One guard within another adds nothing.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether one came since the outermost guard was made.
  static bool interrupted();

 private:
  struct sigaction old_int_ {
  }, old_term_{}, old_hup_{};
  void (*old_pipe_)(int) = SIG_DFL;
};

}  // namespace moegate
