// SPDX-License-Identifier: Apache-2.0
// What every variant of a process finds and must leave as it was: one that takes a thread from the
// others, or burns the cores beside its launches, changes what is measured next to it or after it.
#pragma once

#include <cstddef>
#include <string>

namespace moegate {

/// The calling thread's affinity, priority, signal mask and floating-point modes, the size of
/// OpenMP's teams, pending timers, and how many threads and how much memory of its own the process
/// has.
class ProcessState {
 public:
  ProcessState();
  /// What is different now, as a sentence that blames the variant that ran in between; empty when
  /// nothing is. Threads and timers may end and memory may be freed.
  std::string broken(bool may_start_threads = false) const;
  /// Puts back what can be put back.
  void restore() const;
  /// Bytes of memory that were taken since, and not given back: what no other process shares, from
  /// the heap or not. 0 where the kernel does not tell, and under a sanitizer, whose own it is.
  size_t memory_growth() const;

 private:
  static constexpr size_t kAffinityBytes = 128;  // of a cpu_set_t
  static constexpr size_t kSignalBytes = 128;    // of a sigset_t
  struct Modes {
    unsigned char affinity[kAffinityBytes] = {};
    unsigned char blocked[kSignalBytes] = {};
    int nice = 0;
    unsigned floating_point = 0;
    int omp_threads = 0;
    bool omp_dynamic = false;
    int timers = 0;  // pending
  };
  static Modes read_modes();

  Modes modes_ = read_modes();
  int threads_;
  size_t memory_bytes_;
};

}  // namespace moegate
