// SPDX-License-Identifier: Apache-2.0
// moegate selftest: does the gate stay silent for an unchanged program, and does it catch faults?
#include "harness/base/escape.h"
#include "harness/campaign/canaries.h"
#include "harness/campaign/saboteurs.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/judging_flags.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

struct SelftestCommand {
  SelftestOptions test;
  std::optional<int> aa;         // at least so many process pairs of every row
  std::vector<double> injected;  // slow-downs
  bool canaries = false, saboteurs = false;
};

std::optional<SelftestCommand> read_selftest(const Args& args) {
  SelftestCommand command;
  RunOptions& run = command.test.run;
  LimitOptions limits;
  const auto injected = [&](const std::string& list) {
    for (const std::string& part : parse_list("--inject", list)) {
      command.injected.push_back(parse_share("--inject", part));
    }
  };
  po::options_description flags("What to test");
  flags.add_options()  //
      ("aa", into(command.aa)->value_name("N"),
       "this program against itself, at least N process pairs of every row: a failure is a false "
       "alarm")  //
      ("inject", po::value<std::string>()->notifier(injected)->value_name("P%,P%"),
       "the same with slow-downs of these sizes built into the head, dealt out over the rows")  //
      ("canaries", po::bool_switch(&command.canaries),
       "a slow-down (5 % on a GPU, a factor of 2 on a host) and outputs times 1.05 must be caught, "
       "else exit 21")  //
      ("saboteurs", po::bool_switch(&command.saboteurs),
       "variants of the program moegate_saboteurs, which cheat or break: each must be called what "
       "it "
       "is, else exit 21; stores nothing");
  flags.add(new_db_flag(run.db));
  flags.add(selection_flags(run)).add(measuring_flags(run)).add(limit_flags(limits));
  if (!parse("moegate selftest --aa N --suite S [options]", flags, args)) return std::nullopt;
  if (command.saboteurs && (command.aa || !command.injected.empty() || command.canaries)) {
    usage_error("selftest: --saboteurs has a suite of its own; leave the other tests out");
  }
  if (!command.aa && command.injected.empty() && !command.canaries && !command.saboteurs) {
    usage_error(
        "selftest: nothing to test; give --aa N, --inject 2%,5%, --canaries or --saboteurs");
  }
  if (command.aa) at_least("--aa", *command.aa, 2);
  require_suite(run);
  check_measuring(run);
  run.command = command_line("selftest", args);
  run.tags["selftest"] = "1";
  command.test.backend = backend_of(run.worker.device);
  command.test.limits = [limits](Backend backend) { return limits.of(backend); };
  return command;
}

void print_calibration(const Comparison& result, const std::vector<Calibration>& calibrations) {
  fmt::print("{}\n{}", render(calibration_table(calibrations), format_for_people()),
             render(mde_histogram(result), format_for_people()));
  const auto blind = blind_cases(result);
  if (!blind.empty()) fmt::print("\nBlind:\n");
  for (const std::string& line : blind) fmt::print("- {}\n", one_line(line));
}

/// A/A or injection: measures, stores and prints the calibration. Returns the false alarms.
int calibrate_gate(Store& store, const SelftestCommand& command) {
  const auto& injected = command.injected;
  AbOptions ab = self_against_self(command.test.run, injected);
  ab.least_rounds = command.aa.value_or(0);
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
  fmt::print("{}\n{} of {} variants were called what they are\n",
             render(saboteur_table(all), format_for_people()),
             all.size() - static_cast<size_t>(missed), all.size());
  return missed == 0 ? Exit::ok : Exit::environment;
}

/// A bad suite must leave no new store behind.
void check_plan(RunOptions run) {
  run.worker.task = Task::verify;  // a plan needs no timer
  prepare(run, worker_processes());
}

}  // namespace

int cmd_selftest(const Args& args) {
  const auto command = read_selftest(args);
  if (!command) return 0;
  if (command->saboteurs) return static_cast<int>(try_saboteurs(command->test.run));
  check_plan(command->test.run);
  Store store = Store::open(command->test.run.db, Store::Mode::write);
  if (command->canaries) {
    const Canaries canaries = fly_canaries(store, command->test, worker_processes());
    fmt::print("{}", canaries.text());
    if (!canaries.caught()) return static_cast<int>(Exit::environment);
  }
  const bool calibrates = command->aa || !command->injected.empty();
  if (!calibrates || calibrate_gate(store, *command) == 0) return 0;
  fmt::print("\nfalse alarms: an unchanged program failed\n");
  return static_cast<int>(Exit::latency);
}

}  // namespace moegate
