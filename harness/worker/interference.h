// SPDX-License-Identifier: Apache-2.0
// How much other work on the machine got in the way of this process. On a busy machine the ratio of
// two multi-threaded host variants shifts by tens of percent for as long as the load lasts, so
// neither pairing nor more samples help; it can only be noticed.
#pragma once

#include <cstdint>

namespace moegate {

class Interference {
 public:
  Interference() : start_(read()) {}
  /// Share of the time since construction in which threads of this process wanted a core and had
  /// none: waiting in the run queue, or stolen by the hypervisor. 0 where the kernel does not tell.
  double share() const;

 private:
  struct Times {
    uint64_t run_ns = 0, wait_ns = 0;    // of this process's threads (/proc/self/task/*/schedstat)
    uint64_t all_ticks = 0, stolen = 0;  // of the machine (/proc/stat)
  };
  static Times read();

  Times start_;
};

}  // namespace moegate
