// SPDX-License-Identifier: Apache-2.0
// A host variant with a clock of its own: the program's clock_gettime() is this one, and while the
// variant works half of the time does not pass.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "tests/saboteurs/sabotaged_sum.h"

namespace {

std::atomic<int64_t> stolen_ns = 0;

int64_t real_ns() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto failed = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (failed != 0 || clock != CLOCK_MONOTONIC) return failed;
  const int64_t ns = int64_t{time->tv_sec} * 1'000'000'000 + time->tv_nsec - stolen_ns;
  time->tv_sec = ns / 1'000'000'000;
  time->tv_nsec = ns % 1'000'000'000;
  return 0;
}

namespace moegate::sabotaged_sum {
namespace {

const Kernel<SabotagedSum> stops(
    {.name = "stops_the_clock",
     .backend = Backend::host,
     .help = "the program's clock runs at half its pace while it works",
     .launch =
         [](SabotagedSum& problem, const Launch& where) {
           const int64_t start = real_ns();
           honest(problem, where);
           stolen_ns += (real_ns() - start) / 2;
         },
     .expected = {Status::wrong, "stops the clock"}});

}  // namespace
}  // namespace moegate::sabotaged_sum
