// SPDX-License-Identifier: Apache-2.0
#include "harness/base/interrupt.h"

namespace moegate {
namespace {

volatile std::sig_atomic_t came = 0;
int guards = 0;

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards++ > 0) return;
  came = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { came = 1; };
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
  return came != 0;
}

}  // namespace moegate
