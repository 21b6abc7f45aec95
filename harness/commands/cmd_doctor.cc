// SPDX-License-Identifier: Apache-2.0
// moegate doctor: what this machine can measure, how well, and how fast it is at best.
#include <algorithm>
#include <iterator>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/table.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/doctor_probes.h"
#include "harness/commands/flags.h"
#include "harness/device/open.h"
#include "harness/store/store.h"
#include "harness/timing/probe.h"

namespace moegate {
namespace {

/// What is known before the device is open.
struct EarlyProbes {
  std::vector<Probe> missing, profilers;
};

/// Opens the device. Where a GPU will be used, the profilers are asked before this process has a
/// context on it, and CUPTI is prepared before that, too.
std::unique_ptr<Device> open_for_probes(const std::string& spec, EarlyProbes& early) {
  const int ordinal = cuda_ordinal(spec);
  if (ordinal >= 0) {
    std::string why;
    if (!cuda_devices(&why).empty()) {
      early.profilers = probe_profilers(spec, worker_processes());
      prepare_cupti(ordinal);  // what it says is in the report
    } else if (spec == "auto") {
      early.missing = {{.name = "CUDA", .value = "unavailable", .note = why, .ok = false}};
    }
  }
  return open_device(spec);
}

/// One row per ceiling. `stored` is where they are kept; empty: nowhere.
void add_ceilings(const std::map<std::string, double>& ceilings, bool quiet,
                  const std::string& stored, std::vector<Probe>& probes) {
  std::string note = stored.empty() ? "not stored: give --db" : "stored in " + one_line(stored);
  if (!quiet) note += "; it may be too low, because the A/A was not quiet";
  for (const auto& [name, rate] : ceilings) {
    const bool flops = name.ends_with("_flops");
    probes.push_back(
        {.name = "ceiling " + name,
         .value = flops ? fmt::format("{:.0f}", rate * 1e-12) : fmt::format("{:.1f}", rate * 1e-9),
         .unit = flops ? "TFLOP/s" : "GB/s",
         .note = note});
  }
  if (!ceilings.empty()) return;
  probes.push_back({.name = "ceilings",
                    .value = "unavailable",
                    .note = "nothing could be measured",
                    .ok = false});
}

Table table_of(const std::vector<Probe>& probes) {
  Table table{{"probe", "ok", "value", "unit", "note"}};
  for (const Probe& probe : probes) {
    const Table::Cell value{probe.value, !probe.unit.empty()};
    table.add(probe.name, probe.ok ? "yes" : "no", value, probe.unit, probe.note);
  }
  return table;
}

}  // namespace

int cmd_doctor(const Args& args) {
  std::string device = "auto";
  Format format = Format::text;
  std::optional<std::string> db;
  Flags flags;
  flags.add(one_device_flag(device)).add(format_flag(format));
  flags.add(flag("db", db, "store the measured ceilings here, for percent of peak"));
  if (!parse("doctor", flags, args)) return 0;
  EarlyProbes early;
  const std::unique_ptr<Device> opened = open_for_probes(device, early);
  Health health = probe_device(*opened);
  std::vector<Probe> probes;
  for (std::vector<Probe>* part : {&early.missing, &health.probes, &early.profilers}) {
    std::ranges::move(*part, std::back_inserter(probes));
  }
  const std::map<std::string, double> ceilings = measure_ceilings(*opened);
  if (const auto what = clock_limit(*opened)) health.limits.push_back({kBehindCeilings, *what});
  add_ceilings(ceilings, health.quiet, db.value_or(""), probes);
  if (!health.limits.empty()) probes.push_back(limits_probe(health.limits));
  probes.push_back(probe_python());
  probes.push_back(visible_change(health, opened->facts().backend));
  if (db) Store::open(*db, Store::Mode::write).set_ceilings(opened->facts(), ceilings);
  fmt::print("{}", render(table_of(probes), format));
  return static_cast<int>(health.times ? Exit::ok : Exit::environment);
}

}  // namespace moegate
