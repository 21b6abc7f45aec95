// SPDX-License-Identifier: Apache-2.0
// moegate profile: what a launch does, by hardware counters, sampled stalls or the energy counter.
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/row_command.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/store/query_report.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

struct ProfileCommand {
  RunOptions run;
  bool stalls = false, energy = false, nsys = false;
  Format format = Format::md;
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

po::options_description profile_flags(ProfileCommand& command) {
  RunOptions& run = command.run;
  po::options_description flags("What to look at");
  flags.add_options()  //
      ("metrics",
       po::value<std::string>()
           ->notifier(
               [&](const std::string& text) { run.worker.profiling.metrics = metrics_of(text); })
           ->value_name("M,..|@FILE"),
       "counters by CUPTI's names, or a file with one on each line; default: 42 of them, in 8 "
       "passes")  //
      ("per-kernel", po::bool_switch(&run.worker.profiling.per_kernel),
       "also count each kernel of a launch")  //
      ("stalls", po::bool_switch(&command.stalls),
       "sample where warps wait, and for what, instead of counting")  //
      ("energy", po::bool_switch(&command.energy),
       "measure energy per launch and mean power instead of counting")  //
      ("nsys", po::bool_switch(&command.nsys),
       "print the command that records these rows under Nsight Systems, and stop");
  flags.add(label_flag(run.label));
  flags.add(new_db_flag(run.db));
  flags.add(format_flag(command.format));
  return flags;
}

std::optional<ProfileCommand> read_profile(const Args& args) {
  ProfileCommand command;
  RunOptions& run = command.run;
  po::options_description flags = selection_flags(run);
  flags.add(profile_flags(command));
  if (!parse("moegate profile --suite S [options]", flags, args)) return std::nullopt;
  require_suite(run);
  if (command.stalls + command.energy + command.nsys > 1) {
    usage_error(
        "--stalls, --energy and --nsys are given together; each is a run of its own, give one");
  }
  const bool counts = !command.stalls && !command.energy && !command.nsys;
  if (!counts && (!run.worker.profiling.metrics.empty() || run.worker.profiling.per_kernel)) {
    usage_error(
        "--metrics and --per-kernel are of counters; leave out --stalls, --energy and --nsys");
  }
  run.worker.task = command.stalls ? Task::stalls : command.energy ? Task::energy : Task::counters;
  run.rounds = 1;
  run.command = command_line("profile", args);
  return command;
}

}  // namespace

int cmd_profile(const Args& args) {
  const auto command = read_profile(args);
  if (!command) return 0;
  const RunOptions& run = command->run;
  if (command->nsys) {
    fmt::print("{}\n", nsys_command(run, "moegate"));
    return 0;
  }
  const Tally tally = run_suites(run, 0, worker_processes());
  Store store = Store::open(run.db, Store::Mode::read);
  const auto sql = find_report(name_of(run.worker.task));
  fmt::print("{}", render(run_report(store, sql, {tally.run}), command->format));
  say("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, run.db)));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
