// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/process_state.h"

#include <fmt/format.h>
#include <malloc.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace moegate {
namespace {

/// Rounding, flushing of denormals and masks, without what operations leave behind.
unsigned floating_point_modes() {
#if defined(__x86_64__)
  constexpr unsigned kStickyFlags = 0x3f;  // Intel SDM, MXCSR bits 0 to 5
  return _mm_getcsr() & ~kStickyFlags;
#elif defined(__aarch64__)
  uint64_t modes = 0;  // the flags are in another register, FPSR
  __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
  return static_cast<unsigned>(modes);
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}

void set_floating_point_modes(unsigned modes) {
#if defined(__x86_64__)
  _mm_setcsr(modes);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{modes}));
#else
  std::fesetround(static_cast<int>(modes));
#endif
}

int thread_count() {
  std::error_code gone;
  const std::filesystem::directory_iterator tasks("/proc/self/task", gone);
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// What the kernel counts as written by this process alone (proc(5), smaps_rollup), once the heap
/// has given back what is free. Not pages of files that it only read: code that runs for the
/// first time.
size_t private_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  return 0;
#else
  malloc_trim(0);
  std::ifstream rollup("/proc/self/smaps_rollup");
  size_t bytes = 0;
  for (std::string line; std::getline(rollup, line);) {
    const bool counts = line.starts_with("Private_Dirty:") || line.starts_with("Swap:");
    if (counts) bytes += 1024 * std::stoul(line.substr(line.find(':') + 1));
  }
  return bytes;
#endif
}

constexpr __itimer_which_t kTimers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

/// alarm() and setitimer() have three; what timer_create() made, the kernel lists where it can.
int pending_timers() {
  int pending = 0;
  for (const auto which : kTimers) {
    itimerval timer{};
    getitimer(which, &timer);
    pending += timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
  }
  std::ifstream made("/proc/self/timers");
  for (std::string line; std::getline(made, line);) pending += line.starts_with("ID:");
  return pending;
}

}  // namespace

ProcessState::ProcessState() : threads_(thread_count()), memory_bytes_(private_memory()) {}

ProcessState::Modes ProcessState::read_modes() {
  Modes modes;
  sched_getaffinity(0, sizeof modes.affinity, &modes.affinity);
  pthread_sigmask(SIG_BLOCK, nullptr, &modes.blocked);
  modes.nice = getpriority(PRIO_PROCESS, 0);
  modes.floating_point = floating_point_modes();
  modes.omp_threads = omp_get_max_threads();
  modes.omp_dynamic = omp_get_dynamic() != 0;
  modes.timers = pending_timers();
  return modes;
}

std::string ProcessState::broken(bool may_start_threads) const {
  const Modes now = read_modes();
  if (now.omp_threads != modes_.omp_threads || now.omp_dynamic != modes_.omp_dynamic) {
    return fmt::format("left OpenMP with {} threads for {}; it must not set their number",
                       now.omp_threads, modes_.omp_threads);
  }
  if (!CPU_EQUAL(&now.affinity, &modes_.affinity)) {
    return "left its thread on other processors than before; it must not set affinities";
  }
  if (now.nice != modes_.nice) {
    return fmt::format("left its thread at priority {} for {}", now.nice, modes_.nice);
  }
  if (now.floating_point != modes_.floating_point) {
    return fmt::format("left the floating-point modes at {:#x} for {:#x} (MXCSR, FPCR)",
                       now.floating_point, modes_.floating_point);
  }
  if (std::memcmp(&now.blocked, &modes_.blocked, sizeof now.blocked) != 0) {
    return "left another set of signals blocked";
  }
  if (now.timers > modes_.timers) {
    return "left a timer pending (alarm, setitimer or timer_create), which goes off in another's "
           "launch";
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
  for (const auto which : kTimers) {
    const itimerval none{};
    if (modes_.timers == 0) setitimer(which, &none, nullptr);
  }
  sched_setaffinity(0, sizeof modes_.affinity, &modes_.affinity);
  pthread_sigmask(SIG_SETMASK, &modes_.blocked, nullptr);
  setpriority(PRIO_PROCESS, 0, modes_.nice);
  set_floating_point_modes(modes_.floating_point);
  omp_set_dynamic(modes_.omp_dynamic ? 1 : 0);
  omp_set_num_threads(modes_.omp_threads);
}

size_t ProcessState::memory_growth() const {
  const size_t now = private_memory();
  return now > memory_bytes_ ? now - memory_bytes_ : 0;
}

Interference::Times Interference::read() {
  Times times;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream file(task.path() / "schedstat");
    uint64_t run = 0, wait = 0;
    if (file >> run >> wait) {
      times.run_ns += run;
      times.wait_ns += wait;
    }
  }
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  constexpr int kColumns = 8;  // user nice system idle iowait irq softirq steal (proc(5))
  for (int i = 0; i < kColumns; ++i) {
    times.stolen = 0;  // the last one
    stat >> times.stolen;
    times.all_ticks += times.stolen;
  }
  return times;
}

double Interference::share() const {
  const Times now = read();
  const auto part = [](uint64_t some, uint64_t rest) {
    const double all = static_cast<double>(some) + static_cast<double>(rest);
    return all > 0 ? static_cast<double>(some) / all : 0;
  };
  const double waited = part(now.wait_ns - start_.wait_ns, now.run_ns - start_.run_ns);
  const uint64_t stolen = now.stolen - start_.stolen;
  return std::max(waited, part(stolen, now.all_ticks - start_.all_ticks - stolen));
}

void LaunchWatch::learn(const std::vector<Sample>& one, const std::vector<Sample>& other) {
  std::map<size_t, std::set<uint64_t>> seen;
  for (const auto* samples : {&one, &other}) {
    for (const Sample& s : *samples) seen[s.set].insert(s.outputs);
  }
  for (const auto& [set, hashes] : seen) {
    if (hashes.size() == 1) expected_[set] = *hashes.begin();
  }
}

void LaunchWatch::add(const std::vector<Sample>& timed) {
  for (const Sample& s : timed) {
    compared_ += expected_.contains(s.set);
    odd_ += is_odd(s);
  }
}

bool LaunchWatch::is_odd(const Sample& sample) const {
  const auto expected = expected_.find(sample.set);
  return expected != expected_.end() && sample.outputs != expected->second;
}

std::string LaunchWatch::fault() const {
  if (odd_ == 0) return {};
  return fmt::format(
      "in timed launches: {} of {} left other outputs than the launches that were verified", odd_,
      compared_);
}

}  // namespace moegate
