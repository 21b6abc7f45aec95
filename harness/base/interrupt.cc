// SPDX-License-Identifier: Apache-2.0
#include "harness/base/interrupt.h"

namespace moegate {
namespace {

volatile std::sig_atomic_t came = 0;

}  // namespace

InterruptGuard::InterruptGuard() {
  came = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { came = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  // A worker that died must be an error value of write(), not the end of the runner.
  old_pipe_ = std::signal(SIGPIPE, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  std::signal(SIGPIPE, old_pipe_);
}

bool InterruptGuard::interrupted() {
  return came != 0;
}

}  // namespace moegate
