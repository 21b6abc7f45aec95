// SPDX-License-Identifier: Apache-2.0
#include "harness/store/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/base/error.h"

namespace moegate {

RunLock::RunLock(const std::string& db, int64_t run) {
  // Not the store itself: closing another handle of it would drop SQLite's own locks.
  const std::string path = db + ".lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = run;
  byte.l_len = 1;
  if (fd_ >= 0 && ::fcntl(fd_, F_OFD_SETLK, &byte) == 0) return;
  const int why = errno;
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (why == EAGAIN || why == EACCES) {
    usage_error(
        "{}: run {} is being measured by another process; wait until it has ended, or end it", db,
        run);
  }
  throw Error(Exit::store, fmt::format("{}: cannot be locked: {}; check that you may write there",
                                       path, std::strerror(why)));
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace moegate
