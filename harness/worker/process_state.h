// SPDX-License-Identifier: Apache-2.0
// What a launch does to its process beside its outputs: threads, timers, memory and modes that it
// leaves, time that others took from it, and what it wrote.
#pragma once

#include <sched.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/values/result.h"

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
  void restore() const;
  /// Bytes of memory that were taken since, and not given back: what no other process shares, from
  /// the heap or not. 0 where the kernel does not tell, and under a sanitizer, whose own it is.
  size_t memory_growth() const;

 private:
  struct Modes {
    cpu_set_t affinity = {};
    sigset_t blocked = {};  // the library fills in a part of it only
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

// How much other work on the machine got in the way of this process. On a busy machine the ratio of
// two multi-threaded host variants shifts by tens of percent for as long as the load lasts, so
// neither pairing nor more samples help; it can only be noticed.

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

// Compares what timed launches wrote, launch by launch, by the hashes that the timer took of it: a
// launch in a thousand that does something else is seen.

class LaunchWatch {
 public:
  /// Launches on each problem behind outputs filled with one byte, and with another. Where all
  /// wrote the same, every later launch has to. Where not (sums in any order), only the comparisons
  /// with the truth tell.
  void learn(const std::vector<Sample>& one, const std::vector<Sample>& other);
  void add(const std::vector<Sample>& timed);
  /// Whether a launch wrote something else than those that were learnt.
  bool is_odd(const Sample& sample) const;
  /// How many launches were odd, as a reason; empty when none. Sums in any order may vary
  /// as seldom.
  std::string fault() const;
  /// Timed launches that could be compared.
  int compared() const { return compared_; }

 private:
  std::map<size_t, uint64_t> expected_;  // by problem
  int compared_ = 0, odd_ = 0;
};

}  // namespace moegate
