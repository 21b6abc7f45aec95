// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during a measurement.
#pragma once

#include <csignal>

namespace moegate {

/// While it lives, the first Ctrl-C (or TERM) lets the variant at hand finish and then ends the
/// run; a second one kills at once. Either way what was measured is in the store.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether one came since the guard was made.
  static bool interrupted();

 private:
  struct sigaction old_int_ {
  }, old_term_{};
  void (*old_pipe_)(int);
};

}  // namespace moegate
