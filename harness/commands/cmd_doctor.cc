// SPDX-License-Identifier: Apache-2.0
// moegate doctor: what this machine can measure, how well, and how fast it is at best.
#include "harness/base/error.h"
#include "harness/base/table.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
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
      probes.push_back({"CUDA", "unavailable", "", why, false});
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

int cmd_doctor(const std::vector<std::string>& args) {
  po::options_description options("options");
  options.add_options()                                                                          //
      ("device", po::value<std::string>()->default_value("auto"), "auto, host, cuda or cuda:N")  //
      ("format", po::value<std::string>()->default_value("md"), "md or json")                    //
      ("db", po::value<std::string>(), "store the measured ceilings here, for percent of peak");
  const auto values = parse("moegate doctor [options]", options, args);
  if (!values) return 0;
  const Format format = parse_format((*values)["format"].as<std::string>());
  std::vector<Probe> probes;
  const std::unique_ptr<Device> device =
      open_for_probes((*values)["device"].as<std::string>(), probes);
  for (Probe& probe : probe_device(*device)) probes.push_back(std::move(probe));
  const std::map<std::string, double> ceilings = measure_ceilings(*device);
  for (const auto& [name, rate] : ceilings) probes.push_back(ceiling_row(name, rate));
  if (ceilings.empty()) {
    probes.push_back({"ceilings", "unavailable", "", "nothing could be measured", false});
  }
  if (values->count("db") != 0) {
    Store::open((*values)["db"].as<std::string>(), Store::Mode::write)
        .set_ceilings(device->facts(), ceilings);
  }
  fmt::print("{}", render(table_of(probes), format));
  return 0;
}

}  // namespace moegate
