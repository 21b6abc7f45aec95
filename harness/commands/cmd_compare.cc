// SPDX-License-Identifier: Apache-2.0
// moegate compare: judge one run against another.
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/gate_flags.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

std::map<std::string, Expectation> expectations(const RunInfo& base, const RunInfo& head,
                                                const Sides& sides, const Sides& head_sides) {
  const bool other_device = base.device.uuid != head.device.uuid;
  const std::string note = other_device ? "measured on another device: " + base.device.uuid : "";
  std::map<std::string, Expectation> expected;
  for (const auto& [id, side] : head_sides)
    expected[id.suite] = {describe(base), note, other_device, {}};
  for (const auto& [id, side] : sides) {
    Expectation& e = expected[id.suite];
    e = {describe(base), note, other_device, std::move(e.sides)};
    e.sides[id] = side;
  }
  return expected;
}

/// Two runs with the same options set out to measure the same cases, whatever part of a suite that
/// is.
bool may_lack_cases(const RunInfo& base, const RunInfo& head) {
  return is_partial(head) && (head.status != "complete" || base.options != head.options);
}

}  // namespace

int cmd_compare(const std::vector<std::string>& args) {
  po::options_description flags("What to compare");
  flags.add_options()  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store")  //
      ("base", po::value<std::string>()->value_name("RUN"),
       "the run before: latest, a number or a label")  //
      ("head", po::value<std::string>()->value_name("RUN"), "the run after");
  flags.add(judging_flags());
  const auto values = parse("moegate compare BASE HEAD [options]", flags, args, {"base", "head"});
  if (!values) return 0;
  if (values->count("base") == 0 || values->count("head") == 0) {
    usage_error(
        "compare needs two runs: moegate compare BASE HEAD ('moegate list runs' shows them)");
  }
  const auto db = (*values)["db"].as<std::string>();
  const FailOn fail_on = parse_fail_on((*values)["fail-on"].as<std::string>());
  parse_format((*values)["format"].as<std::string>());
  Store store = open_for_verdict(db);
  const RunInfo base = store.run_info(store.find_run((*values)["base"].as<std::string>()));
  const RunInfo head = store.run_info(store.find_run((*values)["head"].as<std::string>()));
  if (base.id == head.id) usage_error("compare: BASE and HEAD are both {}", describe(base));
  check_comparable(header_of(base, ""), header_of(head, ""), describe(base));

  GateReport report;
  report.limits = read_limits(*values, head.device.backend);
  const bool host = head.device.backend == Backend::host;
  const Sides sides = collect(store.levels(head.id));
  Setting setting{report.limits, host, may_lack_cases(base, head)};
  setting.trust_code = false;  // the numbers are what was asked about
  report.result =
      judge(sides, expectations(base, head, collect(store.levels(base.id)), sides), setting);
  report.exit = decide_exit(report.result, fail_on, false);
  report.run = head;
  report.db = db;
  report.throttle = throttle_summary(store, head.id);
  publish(store, report, *values);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
