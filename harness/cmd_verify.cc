// SPDX-License-Identifier: Apache-2.0
// moegate verify: outputs against the truth, nothing timed, nothing stored.
#include "harness/cli.h"
#include "harness/commands.h"
#include "harness/run_flags.h"
#include "harness/runner.h"

namespace moegate {

int cmd_verify(const std::vector<std::string>& args) {
  const auto values = parse("moegate verify --suite S [options]", selection_flags(), args);
  if (!values) return 0;
  RunOptions options = read_selection(*values);
  options.worker.task = Task::verify;
  const Tally tally = check_suites(options);
  fmt::print("{}\n", summary(tally, "verified"));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
