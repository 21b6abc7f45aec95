// SPDX-License-Identifier: Apache-2.0
// moegate verify: outputs against the truth, nothing timed, nothing stored.
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/publish.h"

namespace moegate {
namespace {

std::optional<RunOptions> read_verify(const Args& args) {
  RunOptions run;
  bool controls = false;
  Flags flags("What to check");
  flags.add(flag("controls", controls)).add(selection_flags(run));
  if (!parse("verify", flags, args)) return std::nullopt;
  require_suite(run);
  run.worker.task = controls ? Task::controls : Task::verify;
  return run;
}

}  // namespace

int cmd_verify(const Args& args) {
  const auto options = read_verify(args);
  if (!options) return 0;
  const Tally tally = check_suites(*options, worker_processes());
  const bool graded = options->worker.task == Task::verify && !tally.graded.empty();
  if (graded) fmt::print("{}", render(precision_table(tally), Format::text));
  if (!tally.invariance.empty()) {
    fmt::print("{}", render(invariance_table(tally), Format::text));
  }
  fmt::print("{}", summary_of_check(tally, options->worker.task));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
