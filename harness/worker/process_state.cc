// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/process_state.h"

#include <fmt/format.h>
#include <malloc.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cfenv>
#include <cstring>
#include <filesystem>

namespace moegate {
namespace {

/// Rounding, flushing of denormals and masks, without what operations leave behind.
unsigned floating_point_modes() {
#if defined(__x86_64__)
  constexpr unsigned kStickyFlags = 0x3f;  // Intel SDM, MXCSR bits 0 to 5
  return _mm_getcsr() & ~kStickyFlags;
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}

void set_floating_point_modes(unsigned modes) {
#if defined(__x86_64__)
  _mm_setcsr(modes);
#else
  std::fesetround(static_cast<int>(modes));
#endif
}

int thread_count() {
  std::error_code gone;
  int count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/task", gone);
       it != std::filesystem::directory_iterator(); it.increment(gone)) {
    ++count;
  }
  return count;
}

size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

ProcessState::ProcessState() : threads_(thread_count()), heap_bytes_(heap_in_use()) {
  static_assert(sizeof(cpu_set_t) <= kAffinityBytes && sizeof(sigset_t) <= kSignalBytes);
}

ProcessState::Modes ProcessState::read_modes() {
  Modes modes;
  cpu_set_t affinity{};
  sched_getaffinity(0, sizeof affinity, &affinity);
  std::memcpy(modes.affinity, &affinity, sizeof affinity);
  sigset_t blocked{};  // the library fills in a part of it only
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::memcpy(modes.blocked, &blocked, sizeof blocked);
  modes.nice = getpriority(PRIO_PROCESS, 0);
  modes.floating_point = floating_point_modes();
  modes.omp_threads = omp_get_max_threads();
  modes.omp_dynamic = omp_get_dynamic() != 0;
  return modes;
}

std::string ProcessState::broken(bool may_start_threads) const {
  const Modes now = read_modes();
  if (now.omp_threads != modes_.omp_threads || now.omp_dynamic != modes_.omp_dynamic) {
    return fmt::format("left OpenMP with {} threads for {}; it must not set their number",
                       now.omp_threads, modes_.omp_threads);
  }
  if (std::memcmp(now.affinity, modes_.affinity, sizeof now.affinity) != 0) {
    return "left its thread on other processors than before; it must not set affinities";
  }
  if (now.nice != modes_.nice) {
    return fmt::format("left its thread at priority {} for {}", now.nice, modes_.nice);
  }
  if (now.floating_point != modes_.floating_point) {
    return fmt::format("left the floating-point modes at {:#x} for {:#x} (MXCSR)",
                       now.floating_point, modes_.floating_point);
  }
  if (std::memcmp(now.blocked, modes_.blocked, sizeof now.blocked) != 0) {
    return "left another set of signals blocked";
  }
  const int threads = thread_count();
  if (threads > threads_ && !may_start_threads) {
    return fmt::format(
        "started {} threads that are still there; it may use OpenMP's {} and must join its own",
        threads - threads_, modes_.omp_threads);
  }
  return {};
}

void ProcessState::restore() const {
  cpu_set_t affinity;
  std::memcpy(&affinity, modes_.affinity, sizeof affinity);
  sched_setaffinity(0, sizeof affinity, &affinity);
  sigset_t blocked;
  std::memcpy(&blocked, modes_.blocked, sizeof blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  setpriority(PRIO_PROCESS, 0, modes_.nice);
  set_floating_point_modes(modes_.floating_point);
  omp_set_dynamic(modes_.omp_dynamic ? 1 : 0);
  omp_set_num_threads(modes_.omp_threads);
}

size_t ProcessState::heap_growth() const {
  const size_t now = heap_in_use();
  return now > heap_bytes_ ? now - heap_bytes_ : 0;
}

}  // namespace moegate
