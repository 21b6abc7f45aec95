// SPDX-License-Identifier: Apache-2.0
// moegate compare: judge one run against another.
#include "harness/campaign/night_gate.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/judging_flags.h"
#include "harness/judge/run_pair.h"
#include "harness/store/two_runs.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

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
  const auto read = [](Store& from, int64_t run) { return collect(from.each_level(run)); };
  auto [before, sides] = of_two_runs(store, base.id, head.id, read);
  report.result = judge_runs(base, head, std::move(before), sides, report.limits);
  report.result.absent_shards = absent_shards(store, head);
  report.exit = decide_exit(report.result, command->judging.fail_on, false);
  report.run = head;
  report.db = command->db;
  report.throttle = throttle_summary(store, head.id);
  publish(store, report, command->judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
