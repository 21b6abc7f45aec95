// SPDX-License-Identifier: Apache-2.0
// moegate verify: outputs against the truth, nothing timed, nothing stored.
#include "harness/base/table.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/run_flags.h"
#include "harness/kernel/controls.h"

namespace moegate {
namespace {

/// How often each control was rejected, and why where it was not.
Table table_of(const Tally& tally) {
  const auto outcomes = {ControlOutcome::rejected, ControlOutcome::accepted,
                         ControlOutcome::unchanged, ControlOutcome::not_applicable};
  Table table{{"control"}, {}};
  for (const ControlOutcome o : outcomes) table.columns.push_back(name_of(o));
  for (const auto& [name, counts] : tally.controls) {
    std::vector<Table::Cell> row = {{name}};
    for (const ControlOutcome o : outcomes) {
      const auto it = counts.find(o);
      row.push_back({std::to_string(it == counts.end() ? 0 : it->second), true});
    }
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

int cmd_verify(const std::vector<std::string>& args) {
  auto flags = selection_flags();
  flags.add_options()(
      "controls",
      "spoil correct outputs of one variant per case in every way; exit 11 where the check does "
      "not notice");
  const auto values = parse("moegate verify --suite S [options]", flags, args);
  if (!values) return 0;
  const bool controls = values->count("controls") > 0;
  RunOptions options = read_selection(*values);
  options.worker.task = controls ? Task::controls : Task::verify;
  const Tally tally = check_suites(options, worker_processes());
  if (controls) fmt::print("{}", render(table_of(tally), Format::md));
  fmt::print("{}\n", summary(tally, controls ? "negative controls" : "verified"));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
