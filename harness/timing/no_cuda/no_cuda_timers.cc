// SPDX-License-Identifier: Apache-2.0
// Timers and probes of CUDA devices in a build without CUDA.
#include "harness/device/open.h"
#include "harness/timing/cupti_loan.h"
#include "harness/timing/probe.h"
#include "harness/timing/profiler.h"
#include "harness/timing/timer.h"

namespace moegate {

std::string prepare_cupti(int) {
  return kNoCuda;
}

std::optional<LoadedModules> loaded_modules() {
  return std::nullopt;
}

CuptiLoan::CuptiLoan(int) : why_(kNoCuda) {}
CuptiLoan::~CuptiLoan() = default;

std::string keep_cupti() {
  return "";
}

std::unique_ptr<Timer> make_cupti_timer(Device&) {
  refuse_cuda("no CUPTI timer");
}

std::unique_ptr<Timer> make_event_timer(Device&) {
  refuse_cuda("no event timer");
}

std::unique_ptr<Profiler> make_counter_profiler(Device&, const Profiling&) {
  refuse_cuda("no hardware counters");
}

std::unique_ptr<Profiler> make_stall_profiler(Device&, const Profiling&) {
  refuse_cuda("no sampling of stalls");
}

std::unique_ptr<Profiler> make_energy_profiler(Device&, const Profiling&) {
  refuse_cuda("no energy counter");
}

Health probe_cuda(Device&) {
  return {.probes = {{"CUDA", "unavailable", "", kNoCuda, false}}, .times = false};
}

std::map<std::string, double> measure_cuda_ceilings(Device&) {
  return {};
}

}  // namespace moegate
