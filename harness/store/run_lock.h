// SPDX-License-Identifier: Apache-2.0
// The right to write into a run.
#pragma once

#include <cstdint>
#include <string>

namespace moegate {

/// Held by one process at a time, and free again as soon as that process ends, however it ends: a lock of the kernel on
/// a byte of the file STORE.lock, which is left beside the store. Runs of one store have a byte each.
class RunLock {
 public:
  RunLock() = default;  // of no run
  /// Throws Error(usage) naming the run while another process, or another lock of this one, holds it. Throws
  /// Error(store) where the file cannot be made.
  RunLock(const std::string& db, int64_t run);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace moegate
