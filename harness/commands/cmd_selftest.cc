// SPDX-License-Identifier: Apache-2.0
// moegate selftest: does the gate stay silent for an unchanged program, and does it catch faults?
#include "harness/base/escape.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/night/selftest.h"

namespace moegate {
namespace {

struct SelftestCommand {
  SelftestOptions test;
  std::string what;              // aa, inject, canaries, saboteurs
  std::optional<int> rounds;     // at least so many process pairs of every row
  std::vector<double> injected;  // slow-downs
};

std::optional<SelftestCommand> read_selftest(const Args& args) {
  SelftestCommand command;
  RunOptions& run = command.test.run;
  LimitOptions limits;
  Flags flags("What to test");
  flags.add(flag("rounds", command.rounds, "aa, inject: process pairs of every row, at least"));
  flags.add(flag("by", [&](const std::string& list) {
    for (const std::string& part : parse_list("--by", list)) {
      command.injected.push_back(parse_share("--by", part));
    }
  }));
  flags.add(new_db_flag(run.db, kAbStore));
  flags.add(selection_flags(run)).add(measuring_flags(run)).add(limit_flags(limits));
  std::set<std::string> given;
  if (!parse("selftest", flags, args, {{"WHAT", po::value(&command.what)}}, &given)) {
    return std::nullopt;
  }
  const std::string& what = command.what;
  if (what != "aa" && what != "inject" && what != "canaries" && what != "saboteurs") {
    usage_error(
        "selftest{}: use aa (this program against itself: a failure is a false alarm), "
        "inject (the same with slow-downs built into the head), canaries (a slow-down and wrong "
        "outputs must be caught) or saboteurs (variants that cheat or break must be found out)",
        what.empty() ? "" : fmt::format(" '{}'", what));
  }
  if (what != "inject")
    refuse_flags(given, {"by"}, "belongs to `moegate selftest inject`; leave it out");
  if (what == "canaries" || what == "saboteurs") {
    refuse_flags(given, {"rounds"}, "belongs to `moegate selftest aa` and `inject`; leave it out");
  }
  if (what == "aa" && !command.rounds) usage_error("selftest aa: give --rounds N");
  if (what == "inject" && command.injected.empty()) {
    usage_error("selftest inject: give --by P%,P%");
  }
  if (command.rounds) at_least("--rounds", *command.rounds, 2);
  require_suite(run);
  check_measuring(run);
  run.command = command_line("selftest", args);
  run.tags["selftest"] = "1";
  command.test.backend = backend_of(run.worker.device);
  command.test.limits = [limits](Backend backend) { return limits.of(backend); };
  return command;
}

void print_calibration(const Comparison& result, const std::vector<Calibration>& calibrations) {
  fmt::print("{}{}\n{}", render(calibration_table(calibrations), Format::text),
             calibrations.empty() ? "" : lambda_text(calibrations.front()),
             render(mde_histogram(result), Format::text));
  const auto blind = blind_cases(result);
  if (!blind.empty()) fmt::print("\nBlind rows, and the smallest slow-down that each one shows:\n");
  for (const std::string& line : blind) fmt::print("- {}\n", one_line(line));
}

/// A/A or injection: measures, stores and prints the calibration. Returns the false alarms.
int calibrate_gate(Store& store, const SelftestCommand& command) {
  const auto& injected = command.injected;
  AbOptions ab = self_against_self(command.test.run, injected);
  ab.least_rounds = command.rounds.value_or(0);
  const Comparison result = measure_self(store, prepare_ab(ab, worker_processes()), command.test);
  const auto calibrations = calibrate(result, injected.empty() ? std::vector<double>{0} : injected);
  store_calibration(store, result.head_run, calibrations);
  print_calibration(result, calibrations);
  return injected.empty() ? calibrations[0].failed : 0;
}

Exit try_saboteurs(const RunOptions& run) {
  const std::vector<TriedSaboteur> all = release_saboteurs(run, worker_processes());
  const auto missed =
      std::ranges::count_if(all, [](const TriedSaboteur& s) { return !s.as_expected(); });
  fmt::print("{}\n{} of {} variants got the status that they deserve\n",
             render(saboteur_table(all), Format::text), all.size() - static_cast<size_t>(missed),
             all.size());
  return missed == 0 ? Exit::ok : Exit::environment;
}

}  // namespace

int cmd_selftest(const Args& args) {
  const auto command = read_selftest(args);
  if (!command) return 0;
  if (command->what == "saboteurs") return static_cast<int>(try_saboteurs(command->test.run));
  RunOptions planned = command->test.run;  // first: a bad suite leaves no store
  planned.worker.task = Task::verify;      // a plan needs no timer
  prepare(planned, worker_processes());
  Store store = Store::open(command->test.run.db, Store::Mode::write);
  if (command->what == "canaries") {
    const Canaries canaries = fly_canaries(store, command->test, worker_processes());
    fmt::print("{}", canaries.text());
    return static_cast<int>(canaries.caught() ? Exit::ok : Exit::environment);
  }
  if (calibrate_gate(store, *command) == 0) return 0;
  fmt::print("\nfalse alarms: an unchanged program failed\n");
  return static_cast<int>(Exit::latency);
}

}  // namespace moegate
