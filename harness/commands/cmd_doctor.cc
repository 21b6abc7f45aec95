// SPDX-License-Identifier: Apache-2.0
// moegate doctor: what this machine can measure, how well, and how fast it is at best.
#include "harness/base/error.h"
#include "harness/base/table.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/device/open.h"
#include "harness/store/store.h"
#include "harness/timing/probe.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

/// Opens the device. CUPTI has to be prepared before that, and only where a GPU will be used.
std::unique_ptr<Device> open_for_probes(const std::string& spec, std::vector<Probe>& probes) {
  const int ordinal = cuda_ordinal(spec);
  if (ordinal >= 0) {
    std::string why;
    if (!cuda_devices(&why).empty()) {
      prepare_cupti(ordinal);  // what it says is in the report
    } else if (spec == "auto") {
      probes.push_back({.name = "CUDA", .value = "unavailable", .note = why, .ok = false});
    }
  }
  return open_device(spec);
}

Probe ceiling_row(const std::string& name, double rate) {
  const bool flops = name.ends_with("_flops");
  return {"ceiling " + name,
          flops ? fmt::format("{:.0f}", rate * 1e-12) : fmt::format("{:.1f}", rate * 1e-9),
          flops ? "TFLOP/s" : "GB/s", "", true};
}

Table table_of(const std::vector<Probe>& probes) {
  Table table{{"probe", "ok", "value", "unit", "note"}, {}};
  for (const Probe& probe : probes) {
    table.rows.push_back({{probe.name},
                          {probe.ok ? "yes" : "no"},
                          {probe.value, !probe.unit.empty()},
                          {probe.unit},
                          {probe.note}});
  }
  return table;
}

}  // namespace

int cmd_doctor(const Args& args) {
  std::string device = "auto";
  Format format = Format::md;
  std::optional<std::string> db;
  po::options_description flags("Options");
  flags.add(device_flag(device));
  flags.add(format_flag(format));
  flags.add_options()("db", into(db)->value_name("PATH"),
                      "store the measured ceilings here, for percent of peak");
  if (!parse("moegate doctor [options]", flags, args)) return 0;
  std::vector<Probe> probes;
  const std::unique_ptr<Device> opened = open_for_probes(device, probes);
  for (Probe& probe : probe_device(*opened)) probes.push_back(std::move(probe));
  const std::map<std::string, double> ceilings = measure_ceilings(*opened);
  for (const auto& [name, rate] : ceilings) probes.push_back(ceiling_row(name, rate));
  if (ceilings.empty()) {
    probes.push_back({.name = "ceilings",
                      .value = "unavailable",
                      .note = "nothing could be measured",
                      .ok = false});
  }
  if (db) Store::open(*db, Store::Mode::write).set_ceilings(opened->facts(), ceilings);
  fmt::print("{}", render(table_of(probes), format));
  return 0;
}

}  // namespace moegate
