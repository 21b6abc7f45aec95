// SPDX-License-Identifier: Apache-2.0
// moegate compare: judge one run against another.
#include "harness/campaign/night_gate.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/judging_flags.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

std::map<std::string, Expectation> expectations(const RunInfo& base, const RunInfo& head,
                                                Sides sides, const Sides& head_sides) {
  const bool other_device = !same_device(base.device.uuid, head.device.uuid);
  const std::string note = other_device ? "measured on another device: " + base.device.uuid : "";
  const Expectation of_a_suite{describe(base), note, other_device, {}};
  std::map<std::string, Expectation> expected;
  for (const auto& [id, side] : head_sides) expected.try_emplace(id.suite, of_a_suite);
  while (!sides.empty()) {
    Sides& rows = expected.try_emplace(sides.begin()->first.suite, of_a_suite).first->second.sides;
    rows.insert(rows.end(), sides.extract(sides.begin()));
  }
  return expected;
}

/// Two runs with the same options set out to measure the same cases, whatever part of a suite that
/// is.
bool may_lack_cases(const RunInfo& base, const RunInfo& head) {
  return is_partial(head) && (head.status != "complete" || base.options != head.options);
}

struct CompareCommand {
  std::string db, base, head;
  JudgingOptions judging;
};

std::optional<CompareCommand> read_compare(const Args& args) {
  CompareCommand command;
  po::options_description flags("What to compare");
  flags.add(db_flag(command.db));
  flags.add_options()  //
      ("base", po::value(&command.base)->value_name("RUN"),
       "the run before: latest, a number or a label")  //
      ("head", po::value(&command.head)->value_name("RUN"), "the run after");
  flags.add(judging_flags(command.judging));
  if (!parse("moegate compare BASE HEAD [options]", flags, args, {"base", "head"})) {
    return std::nullopt;
  }
  if (command.base.empty() || command.head.empty()) {
    usage_error(
        "compare needs two runs: moegate compare BASE HEAD ('moegate list runs' shows them)");
  }
  return command;
}

}  // namespace

int cmd_compare(const Args& args) {
  const auto command = read_compare(args);
  if (!command) return 0;
  Store store = open_for_verdict(command->db);
  store.check_intact(kQuicklyRead);
  const RunInfo base = store.run_info(store.find_run(command->base));
  const RunInfo head = store.run_info(store.find_run(command->head));
  if (base.id == head.id) usage_error("compare: BASE and HEAD are both {}", describe(base));
  check_comparable(header_of(base, ""), header_of(head, ""), describe(base));

  GateReport report;
  report.limits = command->judging.limits.of(head.device.backend);
  const bool host = head.device.backend == Backend::host;
  const Sides sides = collect(store.each_level(head.id));
  Setting setting{report.limits, host, may_lack_cases(base, head)};
  setting.trust_code = false;  // the numbers are what was asked about
  report.result =
      judge(sides, expectations(base, head, collect(store.each_level(base.id)), sides), setting);
  report.result.absent_shards = absent_shards(store, head);
  report.exit = decide_exit(report.result, command->judging.fail_on, false);
  report.run = head;
  report.db = command->db;
  report.throttle = throttle_summary(store, head.id);
  publish(store, report, command->judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
