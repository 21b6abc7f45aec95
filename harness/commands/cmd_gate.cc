// SPDX-License-Identifier: Apache-2.0
// moegate gate: judge a run against the blessed baseline, or against another run; or the resources
// of kernels.
#include <unistd.h>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/first_launches.h"
#include "harness/commands/flags.h"
#include "harness/commands/resources.h"
#include "harness/judge/comparison.h"
#include "harness/night/night_gate.h"
#include "harness/store/row_profiles.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

struct GateCommand {
  std::string db, run;
  std::string replay_program;  // empty: nothing is replayed
  std::optional<double> replay_budget_s;
  GateRules rules;
  JudgingOptions judging;
  std::optional<std::string> against;  // a run
  bool resources = false;
  ResourcesCommand of_kernels;
  std::optional<std::string> baselines, candidate, waivers;  // as typed
};

/// Whether it is one of out/artifacts, as keep_program() names them.
bool is_named_by_hash(const fs::path& program) {
  const std::string folder = fs::absolute(program).parent_path().parent_path().filename();
  return compile_pattern("", "[0-9a-f]{32}").matches(folder);
}

Flags gate_flags(GateCommand& command) {
  GateRules& rules = command.rules;
  Flags flags("What to judge");
  flags.add(db_flag(command.db)).add(run_flag(command.run));
  flags.add(flag("against", command.against, "judge against this run, not against a baseline"));
  flags.add(
      flag("baselines", command.baselines,
           "a baseline file, or a folder of them (default: baselines/ of the project, or here; "
           "for the tool's own kernels the tool's)"));
  flags.add(flag("candidate", command.candidate))
      .add(flag("replay-program", command.replay_program));
  flags.add(flag("replay-budget", [&](const std::string& text) {
    command.replay_budget_s = parse_seconds("--replay-budget", text);
  }));
  flags.add(flag("device", device_of(rules.device), nullptr,
                 "where to replay: as cuda:1, cuda:0,1 or cuda:all (default: as the run was "
                 "measured)"));
  flags.add(flag("waivers", command.waivers));
  flags.add(module_flag(rules.kernels,
                        "the files that the run loaded with --module, for a replay; a store must "
                        "not choose what is loaded, so name them again"));
  flags.add(flag("require-baseline", rules.require_baseline)).add(why_flag(rules.why));
  flags.add(judging_flags(command.judging));
  ResourcesCommand& kernels = command.of_kernels;
  Flags resources("Or the resources of kernels");
  resources.add(flag("resources", command.resources,
                     "compare with CLASS/resources.tsv; exit 10 if a kernel is worse, 13 if it "
                     "changed otherwise; of --module FILE.py the modules that a --run loaded"));
  resources.add(flag("program", kernels.program)).add(class_flag(kernels));
  resources.add(
      flag("variant", kernels.variant, "only kernels whose name, file or variant matches"));
  return flags.add(resources);
}

void check_replay_program(const std::string& program) {
  if (program.empty()) return;
  if (!is_file(program) || access(program.c_str(), X_OK) != 0) {
    usage_error(
        "--replay-program {}: this is not a program; give the path of the baseline's moegate",
        program);
  }
  if (!is_named_by_hash(program)) return;
  check_kept(program);
  const std::string lost = lost_kernels(program);
  if (!lost.empty()) usage_error("--replay-program {}: {}", program, lost);
}

std::optional<GateCommand> read_gate(const Args& args) {
  GateCommand command;
  GateRules& rules = command.rules;
  const std::optional<std::string>& baselines = command.baselines;
  std::set<std::string> given;
  if (!parse("gate", gate_flags(command), args, {}, &given)) return std::nullopt;
  if (command.resources) {
    refuse_other_flags(
        given, {"resources", "program", "class", "variant", "module", "baselines", "run", "db"},
        "has no meaning beside --resources; leave it out");
    command.of_kernels.modules = rules.kernels;
    command.of_kernels.take(given, command.db, command.run, baselines);
    return command;
  }
  refuse_flags(given, {"program", "class", "variant"}, "needs --resources");
  if (command.against) {
    refuse_flags(given,
                 {"baselines", "candidate", "replay-program", "replay-budget", "device", "waivers",
                  "module", "require-baseline"},
                 "is for a baseline; leave it out beside --against");
    return command;
  }
  std::error_code ignored;
  if (baselines && !fs::exists(*baselines, ignored)) {
    usage_error("--baselines {}: no such file or folder", *baselines);
  }
  check_replay_program(command.replay_program);
  use_records(rules, baselines, command.waivers);
  // What stands in for a baseline that nobody blessed lies beside the night's store.
  const fs::path beside = fs::path(command.db).parent_path() / "candidate";
  rules.baselines.candidates =
      command.candidate.value_or(fs::exists(beside, ignored) ? beside : "");
  rules.limits = [limits = command.judging.limits](Backend backend) { return limits.of(backend); };
  rules.fail_on = command.judging.fail_on;
  return command;
}

int compare_runs(const GateCommand& command) {
  Store store = open_for_verdict(command.db);
  store.check_intact(kQuicklyRead);
  const RunInfo base = store.run_info(store.find_run(*command.against));
  const RunInfo head = store.run_info(store.find_run(command.run));
  if (base.id == head.id) usage_error("--against and --run are both {}", describe(base));
  check_comparable(header_of(base, ""), header_of(head, ""), describe(base));

  GateReport report;
  report.limits = command.judging.limits.of(head.device.backend);
  const auto read = [](Store& from, int64_t run) { return collect(from.each_level(run)); };
  auto [before, sides] = of_two_runs(store, base.id, head.id, read);
  report.result = judge_runs(base, head, std::move(before), sides, report.limits);
  report.result.absent_shards = absent_shards(store, head);
  report.result.environment =
      changes_between(store.environment(base.id), store.environment(head.id));
  note_first_launches(store, base.id, head.id, report.result);
  report.exit = decide_exit(report.result, command.judging.fail_on, false);
  report.run = head;
  report.db = command.db;
  report.throttle = throttle_summary(store, head.id);
  publish(store, report, command.judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace

int cmd_gate(const Args& args) {
  const auto command = read_gate(args);
  if (!command) return 0;
  if (command->resources) return check_resources(command->of_kernels);
  if (command->against) return compare_runs(*command);
  Store store = open_for_verdict(command->db);
  GateTime time;
  if (command->replay_budget_s) time.until = Deadline(*command->replay_budget_s);
  Verdict verdict = gate(
      store, command->db, store.find_run(command->run), command->rules,
      [&](const BaselineHeader&) { return command->replay_program; }, time, worker_processes());
  const GateReport report = report_of(store, command->db, std::move(verdict));
  publish(store, report, command->judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
