// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/doctor_probes.h"

#include <filesystem>

#include "harness/base/dynlib.h"
#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/campaign/run_options.h"
#include "harness/judge/verdict.h"
#include "harness/plugin/plugin.h"

namespace moegate {
namespace {

Probe profiler(const char* name, Task task, const std::string& device, WorkerSource& source) {
  WorkerOptions options;
  options.device = device;
  options.task = task;
  try {
    source.start(options);
    return {.name = name, .value = "readable"};
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    return {.name = name, .value = "unavailable", .note = one_line(error.what()), .ok = false};
  }
}

}  // namespace

std::vector<Probe> probe_profilers(const std::string& device, WorkerSource& source) {
  // Never closed: it keeps memory for exceptions of its own, which nobody could find again.
  static const Dynlib& host = *new Dynlib({"libnvperf_host.so"});
  return {{.name = "libnvperf_host",
           .value = host ? "found" : "missing",
           .note = host ? host.path() : "counters need it; it comes with CUPTI: " + host.why(),
           .ok = static_cast<bool>(host)},
          profiler("hardware counters", Task::counters, device, source),
          profiler("stall sampling", Task::stalls, device, source)};
}

Probe probe_python() {
  const bool named = !environment("MOEGATE_PYTHON").empty();
  try {
    const PythonPlace python = find_python();
    return {.name = "Python",
            .value = python.version,
            .note = one_line(fmt::format(
                "{} loads files of kernels; {}", python.program,
                named ? "MOEGATE_PYTHON names it" : "set MOEGATE_PYTHON to use another"))};
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    return {.name = "Python", .value = "missing", .note = one_line(error.what()), .ok = false};
  }
}

Probe visible_change(const Health& health, Backend backend) {
  Probe probe{.name = "smallest change seen", .value = "unknown", .note = "no A/A", .ok = false};
  if (health.log_ratios.size() < 2) return probe;
  const Limits limits = Limits::of(backend);
  const PairedQuestion question{.log_ratios = health.log_ratios, .tick = health.tick};
  const Judgement judged = judge_pairs(std::span(&question, 1), limits).front();
  probe.value = fmt::format("{:.1f}", 100 * judged.mde);
  probe.unit = "%";
  probe.note = fmt::format(
      "a slow-down of this size fails in 9 of 10 cases after {} rounds that are as quiet as the "
      "A/A; the gate fails a row from {}, and calls it blind if this value is over {}",
      health.log_ratios.size(), limit(limits.fail_at), limit(limits.blind_at));
  probe.ok = !judged.blind;
  return probe;
}

Finished run_doctor(const std::string& devices, const std::string& db) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  Finished doctor = run_program({self, "doctor", "--device", devices_of(devices)[0], "--db", db},
                                Output::capture_stdout);
  const bool looked = doctor.exit == static_cast<int>(Exit::environment) && !doctor.out.empty();
  if (looked) doctor.exit = 0;
  return doctor;
}

}  // namespace moegate
