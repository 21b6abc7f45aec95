// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/run_table.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/notes.h"
#include "harness/base/table.h"
#include "harness/base/text.h"
#include "harness/campaign/runner.h"
#include "harness/commands/which_store.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

constexpr size_t kMostRows = 40;

/// "moegate report NAME --run 3": of this run, also when there are newer ones.
std::string report_command(const char* name, const std::string& db, int64_t run) {
  const std::string store = db == nearest_store().path ? "" : " --db " + shell_word(db);
  return fmt::format("moegate report {} --run {}{}", name, run, store);
}

std::string run_table(const std::string& db, int64_t run) {
  Store store = Store::open(db, Store::Mode::read);
  const Table all = run_report(store, find_report("summary"), {run});
  if (all.rows.empty()) return "";
  const auto status =
      static_cast<size_t>(std::ranges::find(all.columns, "status") - all.columns.begin());
  const Table shown = most_important(
      all, kMostRows, [status](const auto& row) { return row.at(status).text != "ok"; });
  const size_t left_out = all.rows.size() - shown.rows.size();
  const std::string more =
      left_out > 0 ? fmt::format("{} more rows: {}", left_out, report_command("summary", db, run))
                   : fmt::format("more: {}", report_command("latency", db, run));
  return fmt::format("{}\n{}\n", render(without_empty_columns(shown), format_for_people()), more);
}

}  // namespace

void print_run(const std::string& db, const Tally& tally) {
  try {
    fmt::print("{}", run_table(db, tally.run));
  } catch (const Error& e) {
    say("no table of the run: {}\n", e.what());
  }
  fmt::print("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
}

}  // namespace moegate
