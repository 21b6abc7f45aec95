// SPDX-License-Identifier: Apache-2.0
// moegate gate: judge a run against the blessed baseline.
#include <unistd.h>

#include "harness/base/home.h"
#include "harness/campaign/night_gate.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/judging_flags.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

struct GateCommand {
  std::string db, run;
  std::string replay_program;  // empty: nothing is replayed
  std::optional<double> replay_budget_s;
  GateRules rules;
  PublishOptions publish;
};

/// Whether it is one of out/artifacts, as keep_program() names them.
bool is_named_by_hash(const fs::path& program) {
  constexpr size_t kHash = 32;
  const std::string folder = fs::absolute(program).parent_path().parent_path().filename();
  return folder.size() == kHash &&
         folder.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<GateCommand> read_gate(const Args& args) {
  GateCommand command;
  GateRules& rules = command.rules;
  JudgingOptions judging;
  std::optional<std::string> baseline, candidate, waivers;
  const auto replay_budget = [&](const std::string& text) {
    command.replay_budget_s = parse_seconds("--replay-budget", text);
  };
  po::options_description flags("What to judge");
  flags.add(db_flag(command.db));
  flags.add(run_flag(command.run));
  flags.add_options()  //
      ("baseline", into(baseline)->value_name("PATH"),
       "a baseline file, or a folder of them (default: baselines/<class> of the tool's home)")  //
      ("candidate", into(candidate)->value_name("DIR"),
       "where a suite has no baseline: judge against the rows recorded here, and record those of "
       "this run that are not there yet")  //
      ("replay-program", po::value(&command.replay_program)->value_name("PATH"),
       "the baseline's program: what the stored numbers leave open is measured again, side by side "
       "with it, and only that decides")  //
      ("replay-budget", po::value<std::string>()->notifier(replay_budget)->value_name("T"),
       "wall time of the replay, such as 10min: the most suspicious rows first, and those left out "
       "are named (default: as long as it takes)")  //
      ("device", device_of(rules.device)->value_name("D"),
       "where to replay: as cuda:1, cuda:0,1 or cuda:all (default: as the run was measured)")  //
      ("waivers", into(waivers)->value_name("FILE"),
       "failures that may pass for a while (default: ci/waivers.ini of the tool's home)")  //
      ("kernels", kernels_of(rules.kernels),
       "the run's kernels from elsewhere, for a replay: named once more, since a store may be "
       "anybody's")  //
      ("require-baseline", po::bool_switch(&rules.require_baseline),
       "a suite without a blessed baseline fails (exit 22)");
  flags.add(judging_flags(judging));
  flags.add(why_flag(rules.why));
  if (!parse("moegate gate [options]", flags, args)) return std::nullopt;
  std::error_code ignored;
  if (baseline && !fs::exists(*baseline, ignored)) {
    usage_error("--baseline {}: no such file or folder", *baseline);
  }
  const std::string& program = command.replay_program;
  if (!program.empty() &&
      (!fs::is_regular_file(program, ignored) || access(program.c_str(), X_OK) != 0)) {
    usage_error("--replay-program {}: is no program; give the path of the baseline's moegate",
                program);
  }
  if (!program.empty() && is_named_by_hash(program)) {
    check_kept(program);
    const std::string lost = lost_kernels(program);
    if (!lost.empty()) usage_error("--replay-program {}: {}", program, lost);
  }
  rules.baselines = {baseline ? fs::path(*baseline) : home() / "baselines", candidate.value_or("")};
  rules.waivers = waivers ? read_waivers(*waivers) : waivers_of_home();
  rules.limits = [limits = judging.limits](Backend backend) { return limits.of(backend); };
  rules.fail_on = judging.fail_on;
  command.publish = judging.publish;
  return command;
}

}  // namespace

int cmd_gate(const Args& args) {
  const auto command = read_gate(args);
  if (!command) return 0;
  Store store = open_for_verdict(command->db);
  GateTime time;
  if (command->replay_budget_s) time.until = Deadline(*command->replay_budget_s);
  Verdict verdict = gate(
      store, command->db, store.find_run(command->run), command->rules,
      [&](const BaselineHeader&) { return command->replay_program; }, time, worker_processes());
  const GateReport report = report_of(store, command->db, std::move(verdict));
  publish(store, report, command->publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
