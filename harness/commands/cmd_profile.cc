// SPDX-License-Identifier: Apache-2.0
// moegate profile: what a launch does, by hardware counters, sampled stalls or the energy counter;
// what first launches cost.
#include <map>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/store/query_report.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

struct ProfileCommand {
  RunOptions run;
  std::string what = "counters";  // counters, stalls, energy, compile
  std::string under;              // ncu, nsys: print how the rows are recorded by that
  Format format = Format::text;
};

/// "a,b", or of "@FILE" the lines that are neither empty nor comments.
std::vector<std::string> metrics_of(const std::string& text) {
  if (!text.starts_with("@")) return parse_list("--metrics", text);
  std::vector<std::string> metrics;
  std::istringstream lines(read_file(text.substr(1)));
  for (std::string line; std::getline(lines, line);) {
    const std::string metric = trimmed(line.substr(0, line.find('#')));
    if (!metric.empty()) metrics.push_back(metric);
  }
  if (metrics.empty()) usage_error("--metrics {}: the file names no metric", text);
  return metrics;
}

Flags profile_flags(ProfileCommand& command) {
  RunOptions& run = command.run;
  Flags flags("What to look at");
  flags.add(flag("metrics", [&](const std::string& text) {
    run.worker.profiling.metrics = metrics_of(text);
  }));
  flags.add(flag("per-kernel", run.worker.profiling.per_kernel));
  flags.add(choice_flag("under", command.under));
  flags.add(label_flag(run.label)).add(new_db_flag(run.db)).add(format_flag(command.format));
  return flags;
}

std::optional<ProfileCommand> read_profile(const Args& args) {
  ProfileCommand command;
  RunOptions& run = command.run;
  std::string what;
  Flags flags = selection_flags(run);
  flags.add(profile_flags(command));
  std::set<std::string> given;
  if (!parse("profile", flags, args, {{"WHAT", po::value(&what)}}, &given)) return std::nullopt;
  if (!what.empty()) command.what = what;
  static const std::map<std::string, Task> kTasks = {{"counters", Task::counters},
                                                     {"stalls", Task::stalls},
                                                     {"energy", Task::energy},
                                                     {"compile", Task::compile}};
  const Task* task = find_or_null(kTasks, command.what);
  if (!task) usage_error("profile '{}': use counters, stalls, energy or compile", what);
  require_suite(run);
  if (command.what != "counters" || !command.under.empty()) {
    refuse_flags(given, {"metrics", "per-kernel"},
                 "belongs to `moegate profile counters`; leave it out");
  }
  run.worker.task = *task;
  run.rounds = 1;
  run.command = command_line("profile", args);
  return command;
}

}  // namespace

int cmd_profile(const Args& args) {
  const auto command = read_profile(args);
  if (!command) return 0;
  const RunOptions& run = command->run;
  if (!command->under.empty()) {
    const bool compute = command->under == "ncu";
    fmt::print("{}\n",
               compute ? ncu_command(run, Cache::cold, "moegate") : nsys_command(run, "moegate"));
    return 0;
  }
  const Tally tally = run.worker.task == Task::compile
                          ? sweep_first_launches(run, worker_processes())
                          : run_suites(run, 0, worker_processes());
  Store store = Store::open(run.db, Store::Mode::read);
  const auto sql = find_report(name_of(run.worker.task));
  fmt::print("{}", render(run_report(store, sql, {tally.run}), command->format));
  say("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, run.db)));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
