// SPDX-License-Identifier: Apache-2.0
#include "harness/base/interrupt.h"

#include <atomic>

namespace moegate {
namespace {

std::atomic<bool> came = false;  // lanes ask from threads of their own
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
int guards = 0;

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards++ > 0) return;
  came = false;
  struct sigaction action {};
  action.sa_handler = [](int) { came = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGHUP, &action, &old_hup_);
  if (old_hup_.sa_handler == SIG_IGN) sigaction(SIGHUP, &old_hup_, nullptr);
  // A worker that died must be an error value of write(), not the end of the runner.
  old_pipe_ = std::signal(SIGPIPE, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  if (--guards > 0) return;
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGHUP, &old_hup_, nullptr);
  std::signal(SIGPIPE, old_pipe_);
}

bool InterruptGuard::interrupted() {
  return came;
}

}  // namespace moegate
