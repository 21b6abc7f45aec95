// SPDX-License-Identifier: Apache-2.0
// moegate run: verify, measure, store; or repeat a stored row.
#include <filesystem>

#include "harness/base/environment.h"
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/campaign/program.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/planning.h"
#include "harness/commands/publish.h"
#include "harness/commands/repeat_row.h"
#include "harness/store/gbench.h"

namespace moegate {
namespace {

struct RunCommand {
  RunOptions run;
  int64_t resume = 0;  // the run to finish; 0: a new one
  bool dry_run = false, profile = false, keep_artifact = false;
  std::optional<std::string> benchmark_out;
  std::optional<int64_t> like;  // the row to repeat
  std::string under;            // ncu, nsys: print how it is recorded by that
};

Flags recording_flags(RunCommand& command, std::optional<std::string>& resume) {
  RunOptions& run = command.run;
  const auto tags = [&](const std::vector<std::string>& given) {
    for (const std::string& tag : given) {
      const auto added = run.tags.insert(split_assignment("--tag", plain_name("--tag", tag)));
      if (!added.second) usage_error("--tag {} is given twice; keep one", added.first->first);
    }
  };
  Flags flags("What to keep");
  flags.add(flag("rounds", run.rounds));
  flags.add(new_db_flag(run.db)).add(label_flag(run.label));
  flags.add(flag("campaign",
                 [&](const std::string& id) { run.campaign = parse_campaign(id, environment); }));
  flags.add(flag("tag", po::value<std::vector<std::string>>()->notifier(tags)));
  flags.add(flag("resume", resume));
  flags.add(flag("benchmark-out", output(command.benchmark_out)));
  flags.add(flag("keep-artifact", command.keep_artifact));
  flags.add(flag("dry-run", command.dry_run));
  flags.add(flag("profile", command.profile));
  Flags repeating("Or one stored row again");
  repeating.add(flag("like", command.like)).add(choice_flag("under", command.under));
  return flags.add(repeating);
}

/// The options that a row or a run was stored with, not other ones.
void refuse_beside_like(const std::set<std::string>& given) {
  for (const std::string& name : given) {
    if (name == "like" || name == "db" || name == "module" || name == "dry-run" || name == "under")
      continue;
    usage_error(
        "--{} is given beside --like, but a row is repeated as it was measured; leave it out",
        name);
  }
}

std::optional<RunCommand> read_run(const Args& args) {
  RunCommand command;
  RunOptions& run = command.run;
  std::optional<std::string> resume;
  Flags flags = selection_flags(run);
  flags.add(measuring_flags(run)).add(recording_flags(command, resume));
  std::set<std::string> given;
  if (!parse("run", flags, args, {}, &given)) return std::nullopt;
  if (command.like) {
    refuse_beside_like(given);
    if (!given.contains("db")) run.db = announced(nearest_store());  // it is there already
    return command;
  }
  if (!command.under.empty()) usage_error("--under {} goes with --like ROW", command.under);
  if (resume) {
    refuse_beside_resume(given, {"db", "benchmark-out", "keep-artifact", "module"});
    Store store = Store::open(run.db, Store::Mode::read);
    command.resume = store.find_resumable(*resume);
    RunOptions stored;
    stored.from_json(store.run_info(command.resume).options);
    use_named_kernels(stored, run.worker.kernels, fmt::format("run {}", command.resume));
    stored.db = run.db;
    run = stored;
    return command;
  }
  require_suite(run);
  check_measuring(run);
  within("--rounds", run.rounds, 1, kMostRounds);
  run.command = command_line("run", args);
  return command;
}

void print_plan(const RunOptions& options) {
  const Plan plan = plan_by(planner_of(options), options);
  const std::vector<RowName> rows = plan.rows();
  for (const auto& [key, variant] : rows) fmt::print("{} {}\n", one_line(key), one_line(variant));
  say("{} cases on the {} device\n", plan.cases.size(), name_of(plan.hello.device.backend));
  say("{}\n", time_text({.rows = rows.size(),
                         .rounds = options.rounds,
                         .results = rows.size() * static_cast<size_t>(options.rounds),
                         .seconds_each = 0,
                         .budget_s = options.worker.sampling.budget_s,
                         .case_timeout_s = options.case_timeout_s}));
}

}  // namespace

int cmd_run(const Args& args) {
  const auto command = read_run(args);
  if (!command) return 0;
  const RunOptions& run = command->run;
  if (command->like) {
    return repeat_row({.row = *command->like,
                       .db = run.db,
                       .modules = run.worker.kernels,
                       .under = command->under,
                       .runs = !command->dry_run});
  }
  if (command->dry_run) {
    print_plan(run);
    return 0;
  }
  if (command->profile) {
    RunOptions profiled = run;
    profiled.worker.task = Task::profile;
    const Tally tally = check_suites(profiled, worker_processes());
    fmt::print("{}\n", summary(tally, "launched for the profiler"));
    return static_cast<int>(tally.exit());
  }
  const Tally tally = run_suites(run, command->resume, worker_processes());
  if (command->keep_artifact) {
    const auto folder = std::filesystem::path(run.db).parent_path() / "artifacts";
    const std::string kept = keep_program(folder.string(), tally.kernels);
    const std::string lost = try_kept(kept, run.worker, worker_processes());
    if (!lost.empty()) say("note: {}\n", lost);
  }
  if (command->benchmark_out) write_benchmark_json(run.db, tally.run, *command->benchmark_out);
  print_run(run.db, tally);
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
