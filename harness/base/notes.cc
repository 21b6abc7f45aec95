// SPDX-License-Identifier: Apache-2.0
#include "harness/base/notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "harness/base/escape.h"

namespace moegate {
namespace {

std::atomic<bool> given_up = false;

}  // namespace

void say_raw(const std::string& text) noexcept {
  size_t done = 0;
  while (!given_up && done < text.size()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      given_up = true;
    }
  }
}

void say_text(const std::string& text) noexcept {
  try {
    say_raw(printable(text));
  } catch (...) {
    // Without memory there is nothing to say.
  }
}

void keep_standard_streams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Not to be written to, so that an output is not lost without a word.
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) return;
  }
}

}  // namespace moegate
